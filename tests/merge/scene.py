"""A small registry in a git repository, evidence for what it is, and the gate's answer; nothing of it is imported."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from opcheck.core.evidence import Evidence, asked, key_of, to_text
from opcheck.evidence.here import Here
from tests.command_line import Said, opcheck

IDENTITY = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
}  # fmt: skip
NOW = datetime.datetime.now(datetime.UTC)
UNTIL = (NOW + datetime.timedelta(days=60)).date()

REGISTRY = f"""
schema = 1

[registry]
modules = ["mine"]

[gate]
accept = ["PASS", "PASS WITH LIMITATIONS"]
backends = ["cpu"]
max_age = "30d"

[defaults.numerics]
fudge_factor = 2.0

[defaults.coverage]
lines = 0.9

[op."mine::scale"]
kind = "elementwise"
dtypes = ["float32", "bfloat16"]
mixed = [{{ x = "bfloat16", y = "float32" }}]
dims = ["rows", "cols"]
largest = {{ cols = 65536 }}
empty = ["rows"]
tiles = {{ cols = [128, 1024] }}
production = [{{ rows = 4096, cols = 4096 }}, {{ rows = 8192, cols = 128 }}]
variants = [{{ by = 2.0 }}, {{ by = 0.5 }}]
deterministic = {{ forward = true, backward = true }}
unsupported = [{{ dtype = "float64", reason = "the factor is float32" }}]
[op."mine::scale".numerics.float32]
fudge_factor = 6.0
reason = "a fast reciprocal"
[op."mine::scale".ulp]
max_ulp = 1.5

[op."mine::total"]
kind = "reduction"
dtypes = ["float32"]
dims = ["cols"]

[[waiver]]
op = "mine::total"
check = "bias"
where = {{ dtype = "float32" }}
reason = "sums in one order"
until = {UNTIL}
"""

SCALE = '''"""mine::scale."""
import opcheck
import torch

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("mine::scale", reference=reference, golden=golden, samples=samples)
def scale(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    return kernel.forward(x, by)


@scale.register_fake
def _(x, by=2.0):
    return torch.empty_like(x)
'''

KERNEL = """import triton
import triton.language as tl

from mine._helper import blocks


@triton.jit
def times(v, by):
    return v * by


@triton.jit
def scale_kernel(x, y, n, by, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, times(tl.load(x + at, mask=at < n), by), mask=at < n)


def forward(x, by):
    y = x.new_empty(x.shape)
    scale_kernel[blocks(x)](x, y, x.numel(), by, BLOCK=128)
    return y
"""

REFERENCE = '''"""What scale is."""
import torch

from opcheck import Case, Sample

LARGEST = 6e4


def clamped(x):
    return x.clamp(-LARGEST, LARGEST)


def reference(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    """Scale in float32."""
    return clamped(x.float() * by).to(x.dtype)


def golden(x, by=2.0):
    return clamped(x * by)


def samples(case: Case) -> Sample:
    return Sample(case.tensor("rows", "cols", name="x"))
'''

TOTAL = '''"""mine::total."""
import opcheck
import torch
import triton
import triton.language as tl
from mine._helper import blocks


@triton.jit
def total_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y, tl.sum(tl.load(x + at, mask=at < n, other=0.0)))


def plain(x):
    return x.sum()


def samples(case):
    return opcheck.Sample(case.tensor("cols", name="x"))


@opcheck.register("mine::total", reference=plain, golden=plain, samples=samples)
def total(x: torch.Tensor) -> torch.Tensor:
    y = x.new_empty(())
    total_kernel[blocks(x)](x, y, x.numel(), BLOCK=1024)
    return y
'''

FILES = {
    "registry.toml": REGISTRY,
    "mine/__init__.py": "",
    "mine/_helper.py": "def blocks(x):\n    return (-(-x.numel() // 128),)\n",
    "mine/scale/__init__.py": SCALE,
    "mine/scale/kernel.py": KERNEL,
    "mine/scale/reference.py": REFERENCE,
    "mine/total.py": TOTAL,
    ".gitignore": ".opcheck\n",
}
RESTS_ON = {"mine::scale": "mine/scale/*.py", "mine::total": "mine/total.py", "mine::fresh": "mine/fresh.py"}
# opcheck's own source is hashed in earnest once, in the test of a real audit.
QUICKLY = patch.object(Here, "_source", "0" * 32)
WAIVED = f"waiver for bias of mine::total, dtype float32 until {UNTIL}"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ("git", *arguments), cwd=folder, env={**os.environ, **IDENTITY}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """A working tree on a branch `change` that left `main`."""

    root: Path

    @property
    def registry(self) -> str:
        return (self.root / "registry.toml").read_text(encoding="utf-8")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, (path, old, text.count(old))
        self.write(path, text.replace(old, new))

    def declare(self, old: str, new: str) -> None:
        """Edit the registry."""
        self.edit("registry.toml", old, new)

    def add(self, text: str) -> None:
        """Add to the registry."""
        self.write("registry.toml", f"{self.registry}\n{text}\n")

    def undeclare(self, op: str) -> None:
        """Delete an op's tables."""
        kept = self.registry.split("\n[")
        assert any(f'op."{op}"' in part for part in kept)
        self.write("registry.toml", "\n[".join(part for part in kept if not part.startswith(f'op."{op}"')))

    def delete(self, path: str) -> None:
        (self.root / path).unlink()

    def commit(self, message: str = "Change") -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", message)

    def on_main(self) -> None:
        git(self.root, "checkout", "-q", "main")

    def back(self) -> None:
        git(self.root, "checkout", "-q", "change")

    def line(self, op: str, *, backend: str = "cpu", level: str = "standard", **changes: object) -> Evidence:
        """What a whole audit of an op, as it is now, would have left."""
        here = Here(self.root)
        files = [path.relative_to(self.root).as_posix() for path in self.root.glob(RESTS_ON[op])]
        folders = sorted({os.path.dirname(path) for path in files} | {"mine"})
        files += ["mine/__init__.py", "mine/_helper.py"]
        ids = (f"{op}[float32;cols=129;normal;;;;0]@{backend}", f"{op}[float32;cols=1;zeros;;;;0]@{backend}")
        with (self.root / "registry.toml").open("rb") as file:
            document = tomllib.load(file)
        wanted = asked(document, op, level=level, seeds=(0,), budget=None, checks=("numerics",), case_ids=ids)
        with QUICKLY:
            manifest = here.manifest(files, folders=folders, asked=wanted)
        made = Evidence(
            op=op, backend=backend, device="x86_64 CPU", level=level, verdict="PASS", checks=("numerics",), whole=True,
            exit_ok=True, cases=2, case_ids=ids, dtypes=("float32",), families=("normal", "zeros"),
            finished=NOW.isoformat(timespec="seconds"), manifest=manifest,
            waivers=(WAIVED,) if op == "mine::total" else (),
        )  # fmt: skip
        made = replace(made, **changes)  # type: ignore[arg-type]
        return replace(made, key=key_of(made.manifest, made.backend, made.capability))

    def keep(self, *lines: Evidence, file: str = "cpu-standard.jsonl") -> None:
        """Write an evidence file."""
        self.write(f".opcheck/evidence/{file}", to_text(lines))

    def audit(self, scale: str = "PASS", total: str = "PASS WITH LIMITATIONS", **both: object) -> None:
        """Leave evidence of both ops as they are now, with these verdicts."""
        self.keep(self.line("mine::scale", verdict=scale, **both), self.line("mine::total", verdict=total, **both))

    def gate(self, *flags: str) -> Said:
        """Ask whether `change` may merge into `main`."""
        with patch.dict(os.environ, IDENTITY), QUICKLY:
            base = () if "--base" in flags else ("--base", "main")
            return opcheck("gate", "--registry", str(self.root / "registry.toml"), *base, *flags)


def template(folder: Path) -> Repo:
    """Make the repository from which each pull request starts, audited."""
    repo = Repo(root=folder)
    for path, text in FILES.items():
        repo.write(path, text)
    git(folder, "init", "-q", "-b", "main")
    repo.commit("Start")
    git(folder, "checkout", "-q", "-b", "change")
    repo.audit()
    return repo


def copied(repo: Repo, folder: Path) -> Repo:
    shutil.copytree(repo.root, folder, symlinks=True)
    with contextlib.suppress(FileNotFoundError):
        (folder / ".git" / "index.lock").unlink()
    return Repo(root=folder)


def decision(said: Said) -> dict:
    """The gate's answer as JSON."""
    return json.loads(said.out)
