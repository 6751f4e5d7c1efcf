"""Limits and pieces of `registry.toml` that the tests of `opcheck.declared` share."""

from dataclasses import dataclass
from pathlib import Path

from opcheck.core.policy import ByWidth, Policy, limit
from opcheck.declared import load


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericsLimits:
    fudge_factor: ByWidth = limit(ByWidth(narrow=2.0, wide=4.0), "Times the reference's error.")
    project_atol: float = limit(0.0, "Absolute error accepted everywhere.")
    max_reference_relative_error: float = limit(0.10, "Above it the gate is invalid.", loose="neither")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeterminismLimits:
    runs: int = limit(10, "Runs.", loose="lower")


LIMITS: dict[str, type] = {"numerics": NumericsLimits, "determinism": DeterminismLimits}

HEAD = 'schema = 1\nregistry.modules = ["ops"]\n'
OP = f"""{HEAD}
[op."ops::f"]
kind = "elementwise"
dtypes = ["float32", "bfloat16"]
dims = ["rows", "cols"]
"""

# The example of the documentation, with every key of the format.
WHOLE = """
schema = 1
[registry]
modules = ["ops", "ops.more"]
[defaults.numerics]
fudge_factor = { narrow = 2.0, wide = 4.0 }
project_atol = 0.0
max_reference_relative_error = 0.10
[defaults.numerics.float16]
project_atol = 1e-7
reason = "subnormals are flushed"
source = "issue 12"
[gate]
accept = ["PASS", "INCONCLUSIVE"]
backends = ["cpu", "cuda:sm_90"]

[op."ops::rms_norm"]
formula = "x * rsqrt(mean(x^2) + eps) * weight"
kind = "normalization"
dtypes = ["float32", "float16", "bfloat16"]
mixed = [{ x = "bfloat16", weight = "float32" }]
accumulator = "float32"
intermediates = ["float32"]
dims = ["...", "rows", "cols"]
reduces = ["cols"]
smallest = { rows = 1, cols = 2 }
largest = { cols = 65536 }
sizes = { rows = [64, 4096] }
multiple = { cols = 2 }
empty = ["rows", "..."]
tiles = { cols = [1024] }
production = [{ rows = 4096, cols = 4096 }]
variants = [{ eps = 1e-5, approximate = "tanh", causal = true, window = -1 }]
values = ["near_overflow", "saturating"]
contiguous = { x = "rows are read as one block" }
extent = { x = "a window of the rows is read" }
no_grad = { cos = "a table" }
nonfinite = { undefined = "masked by the caller" }
deterministic = { forward = true, backward = false }
random = true
overflow = "saturate"
unsupported = [{ dtype = "float64", reason = "statistics are float32" }]
[op."ops::rms_norm".numerics]
project_atol = 1e-6
reason = "eps"
[op."ops::rms_norm".numerics.float32]
fudge_factor = 6
reason = "rsqrt"
source = "H200"
[op."ops::rms_norm".numerics.existing]
float16 = { atol = 1e-2, rtol = 1e-3, reason = "the old test" }
[op."ops::rms_norm".determinism]
runs = 20

[[waiver]]
op = "ops::rms_*"
check = "determinism"
where = { dtype = "float16", backend = "cuda" }
reason = "atomics"
until = 2027-03-31
"""


def policy(folder: Path, text: str) -> Policy:
    """Write a registry to a folder and load it."""
    path = folder / "registry.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, LIMITS)
