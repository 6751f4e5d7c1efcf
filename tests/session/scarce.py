"""A registry of ops for which memory runs short: while other workers run, or whenever they are called."""

from __future__ import annotations

from pathlib import Path

MODULE = """
import os
from pathlib import Path

import torch
import opcheck
from opcheck.run import execute

CALLS = Path(__file__).parents[2] / "calls"  # what changes in the project itself while it is audited is no evidence
OURS = 7  # elements for which opcheck itself runs out of memory
plain = execute.nearest_decoy


def nearest_decoy(name, golden):
    if golden.outputs["out"].shape == (OURS,):
        called("ours")
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    return plain(name, golden)


execute.nearest_decoy = nearest_decoy


def called(name):
    \"\"\"Write down a call, with how many workers there are; return whether it is the first one.\"\"\"
    first = not CALLS.exists() or name not in CALLS.read_text().split()
    with open(f"/proc/self/task/{os.getpid()}/stat") as file:
        parent = file.read().rpartition(")")[2].split()[1]
    with open(f"/proc/{parent}/task/{parent}/children") as file:
        workers = len(file.read().split())
    with open(CALLS, "a") as file:
        file.write(f"{name} {workers}\\n")
    return first


def refuse():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def reference(x):
    return x * 2


def samples(case):
    return opcheck.Sample(case.tensor("n", name="x"))


def register(name, body, *, backward=lambda ctx, grad: grad * 2, **given):
    oracle = {"reference": reference, "golden": reference, "samples": samples, **given}

    def op(x: torch.Tensor) -> torch.Tensor:
        return body(x)

    made = opcheck.register(f"scarce::{name}", **oracle)(op)
    made.register_fake(lambda x: torch.empty_like(x))
    made.register_autograd(backward)


def once(x):
    if x.shape == (4,) and called("once"):
        refuse()
    return x * 2


def once_backward(ctx, grad):
    if called("backward"):
        refuse()
    return grad * 2


def always(x):
    called("always")
    torch.empty(1 << 50)


def reference_short(x):
    if x.dtype == torch.float32:
        called("reference")
        refuse()
    return x * 2


def samples_once(case):
    if called("samples"):
        refuse()
    return samples(case)


def dies(x):
    if x.shape == (4,):
        if not called("dies"):
            os._exit(3)
        refuse()
    if called("dies_after"):
        refuse()
    return x * 2


def wrong(x):
    called("wrong")
    return x * 3


register("once", once)
register("backward", reference, backward=once_backward)
register("always", always)
register("reference", reference, reference=reference_short, golden=reference)
register("samples", reference, samples=samples_once)
register("ours", reference)
register("dies", dies)
register("wrong", wrong)
"""

TABLE = """[op."scarce::{name}"]
kind = "contraction"
dtypes = ["float32"]
dims = ["n"]
"""

OPS = ("once", "backward", "always", "reference", "samples", "ours", "dies", "wrong")


def case(op: str, size: int = 4) -> str:
    """The id of a case."""
    return f"scarce::{op}[float32;n={size};normal;;;;0]@cpu"


def write(root: Path) -> Path:
    """Write the project into a folder of `root` and return the path of its registry."""
    project = root / "project"
    (project / "scarce_ops").mkdir(parents=True)
    (project / "scarce_ops/__init__.py").write_text(MODULE)
    tables = "\n".join(TABLE.format(name=name) for name in OPS)
    (project / "registry.toml").write_text(f'schema = 1\n\n[registry]\nmodules = ["scarce_ops"]\n\n{tables}')
    return project / "registry.toml"


def calls(root: Path) -> dict[str, list[int]]:
    """How many workers there were at each call that was written down."""
    found: dict[str, list[int]] = {}
    for line in (root / "calls").read_text().splitlines():
        name, workers = line.split()
        found.setdefault(name, []).append(int(workers))
    return found
