"""A registry of small ops: two rest on a helper, one of these on a table too, one on nothing, and one is wrong."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

HELPER = """
import torch
import opcheck

def reference(x):
    return x * 2

def samples(case):
    return opcheck.Sample(case.tensor("n", name="x"))

def register(name):
    return opcheck.register(name, reference=reference, golden=reference, samples=samples)

def complete(op):
    op.register_fake(lambda x: torch.empty_like(x))
    op.register_autograd(lambda ctx, dy: dy * 2)
"""

OP = """
import torch
{imports}

@register("kept::{name}")
def {name}(x: torch.Tensor) -> torch.Tensor:
    return x * {factor}

complete({name})
"""

TABLE = """[op."kept::{name}"]
kind = "contraction"
dtypes = ["float32"]
dims = ["n"]
empty = ["n"]
sizes = {{ n = [4] }}
nonfinite = {{ undefined = "few cases are enough" }}
"""

FROM_HELPER = "from kept_ops._rows import complete, register"
FROM_TABLE = """import pathlib, tomllib
import kept_lib.units
from . import _rows
from ._rows import complete, register
FACTOR = tomllib.loads(pathlib.Path(__file__).with_name("factor.toml").read_text())["factor"]"""
OPS = ("double", "lone", "table", "wrong")
REGISTRY = 'schema = 1\n\n[registry]\nmodules = ["kept_ops"]\n\n' + "\n".join(TABLE.format(name=name) for name in OPS)


def write(root: Path) -> Path:
    """Write the project and return the path of its registry."""
    folder = root / "kept_ops"
    folder.mkdir(parents=True)
    (root / "kept_lib").mkdir()
    (root / "kept_lib/__init__.py").write_text("")
    (root / "kept_lib/units.py").write_text("ULP = 2.0**-24\n")
    (folder / "__init__.py").write_text("")
    (folder / "_rows.py").write_text(HELPER)
    (folder / "factor.toml").write_text("factor = 2\n")
    (folder / "double.py").write_text(OP.format(imports=FROM_HELPER, name="double", factor=2))
    (folder / "table.py").write_text(OP.format(imports=FROM_TABLE, name="table", factor="FACTOR"))
    (folder / "lone.py").write_text(HELPER + OP.format(imports="", name="lone", factor=2))
    (folder / "wrong.py").write_text(OP.format(imports=FROM_HELPER, name="wrong", factor=3))
    (root / "registry.toml").write_text(REGISTRY)
    return root / "registry.toml"


def copied(root: Path, to: Path) -> Path:
    """Copy a project with its evidence, times of change and all; return the path of the copy's registry."""
    shutil.copytree(root, to)
    return to / "registry.toml"


def edit(path: Path, old: str, new: str) -> None:
    """Change a file, and its time of change for certain."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    touch(path)


def touch(path: Path) -> None:
    """Change nothing of a file but its time of change."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))
