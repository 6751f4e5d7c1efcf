"""Make the tables of the interpreter's self-test: run its kernels on a GPU and store inputs and answers, bit for bit.

    python benchmarks/interpreter_tables.py --out DIR                  on a CUDA GPU
    python benchmarks/interpreter_tables.py --out DIR --source model   anywhere: exact rational arithmetic instead

Writes `DIR/probes.json`, which belongs into `opcheck/backends/interpreter/tables/`. A kernel that fails, and an answer
outside its own bound, is printed; the exit status is 1 then and the table lacks that probe.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import platform
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

SEED = 20260117
#: Probes judged by their bits whose inputs are not those of the casts and of the arithmetic.
SPECIAL = ("max", "argmax", "scale", "atomic_add", "masked_load")
#: Precision with the hidden bit, exponent of the smallest normal number, largest finite value, overflow.
FORMATS = {
    "bfloat16": (8, -126, Fraction(2) ** 127 * (2 - Fraction(1, 2**7)), "inf"),
    "float16": (11, -14, Fraction(65504), "inf"),
    "float32": (24, -126, Fraction(2) ** 127 * (2 - Fraction(1, 2**23)), "inf"),
    "float8_e4m3fn": (4, -6, Fraction(448), "saturate"),
    "float8_e5m2": (3, -14, Fraction(57344), "saturate"),
}
#: Where the narrow formats round, overflow and vanish, and what is not a number.
CORNERS = (
    *(1.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-9, 1 + 2.0**-11, 1 + 2.0**-12, 1.0625, 1.1875, 0.1, 1 / 3),
    *(447.9, 448.0, 463.99, 464.0, 464.01, 480.0, 500.0, 1000.0, 57344.0, 61439.0, 61440.0, 65504.0, 65519.9, 65520.0),
    *(2.0**-9, 2.0**-10, 1.5 * 2.0**-10, 2.0**-11, 2.0**-16, 2.0**-17, 1.25 * 2.0**-17, 2.0**-24, 2.0**-25),
    *(1.5 * 2.0**-25, 2.0**-126, 2.0**-127, 2.0**-133, 2.0**-134, 1.5 * 2.0**-134, 2.0**-149, 3.3e38, 3.4e38),
    *(3.39e38, math.inf, math.nan),
)


def round_exactly(value: Fraction, dtype: str, negative_zero: bool = False) -> float:
    """Round a rational once, to nearest even, to `dtype`; the result as a Python float, which holds all these types."""
    precision, smallest, largest, overflow = FORMATS[dtype]
    magnitude = abs(value)
    sign = -1.0 if value < 0 or (value == 0 and negative_zero) else 1.0
    if magnitude == 0:
        return sign * 0.0
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    step = Fraction(2) ** (max(exponent, smallest) - precision + 1)
    rounded = round(magnitude / step) * step
    if rounded > largest:
        return sign * (math.inf if overflow == "inf" else float(largest))
    return sign * float(rounded)


def narrow(value: float, dtype: str) -> float:
    """Convert one float as an H200 does."""
    if math.isnan(value):
        return value
    if math.isinf(value):
        largest, overflow = FORMATS[dtype][2:]
        return value if overflow == "inf" else math.copysign(float(largest), value)
    return round_exactly(Fraction(value), dtype, math.copysign(1.0, value) < 0)


def combine(what: str, x: float, y: float, dtype: str) -> float:
    """Add, subtract, multiply or compare two floats with one rounding."""
    if what in ("maximum", "maximum_nan"):
        if math.isnan(x) or math.isnan(y):
            return math.nan if what == "maximum_nan" or (math.isnan(x) and math.isnan(y)) else (y if x != x else x)
        return max(x, y)
    if what == "select":
        return -x if x < y else y
    y = -y if what == "sub" else y
    plain = x * y if what == "mul" else x + y
    if not (math.isfinite(x) and math.isfinite(y)):
        return plain
    exact = Fraction(x) * Fraction(y) if what == "mul" else Fraction(x) + Fraction(y)
    return round_exactly(exact, dtype, math.copysign(1.0, plain) < 0)


def model(spec, inputs: list[np.ndarray]) -> np.ndarray:
    """Answer a probe without its kernel."""
    from opcheck.backends.interpreter.probe_specs import BLOCK, NUMPY, ROWS

    what = spec.name.partition(".")[2]
    output = NUMPY[spec.output]
    values = [x.astype(np.float64).tolist() for x in inputs]
    if spec.dtype == "int32":
        return _model_int32(what, inputs)
    if spec.bound is not None:
        exact = spec.bound([x.astype(np.float64) for x in inputs]).exact
        if spec.inexact:
            return _one_by_one(what, inputs[0].reshape(ROWS, BLOCK))
        return np.array([narrow(v, spec.output) for v in exact.tolist()]).astype(output)
    if what == "masked_load":
        return np.where(np.arange(spec.size) < spec.size - 11, inputs[0], np.zeros(1, output))
    if what == "max":
        rows = inputs[0].reshape(ROWS, BLOCK)
        return np.array([max((v for v in row.tolist() if v == v), default=math.nan) for row in rows]).astype(output)
    if what == "argmax":
        return np.array([row.index(max(row)) for row in inputs[0].reshape(ROWS, BLOCK).tolist()], np.int32)
    if what == "scale":
        tenth = float(np.float32(0.1))
        return np.array([combine("mul", x, tenth, "float32") for x in values[0]]).astype(output)
    if len(values) == 1:
        return np.array([narrow(x, spec.output) for x in values[0]]).astype(output)
    name = "add" if what == "atomic_add" else what
    return np.array([combine(name, x, y, spec.output) for x, y in zip(*values, strict=True)]).astype(output)


def _one_by_one(what: str, rows: np.ndarray) -> np.ndarray:
    """Sum in order, rounding each time: one of the orders that the bound allows."""
    totals = np.zeros(rows.shape, rows.dtype)
    name = {2: "bfloat16", 4: "float32"}[rows.dtype.itemsize] if rows.dtype != np.float16 else "float16"
    for row, total in zip(rows.tolist(), totals, strict=True):
        running = 0.0
        for column, value in enumerate(row):
            running = combine("add", running, float(value), name)
            total[column] = running
    return totals[:, -1] if what == "sum" else totals.ravel()


def _model_int32(what: str, inputs: list[np.ndarray]) -> np.ndarray:
    if what == "from_float32":
        low, high = -(2**31), 2**31 - 1
        return np.array(
            [0 if x != x else low if x <= low else high if x >= high else int(x) for x in inputs[0].tolist()], np.int32
        )
    pairs = zip(*(x.tolist() for x in inputs), strict=True)
    exact = [x * y if what == "mul" else x + y for x, y in pairs]
    return np.array([(v + 2**31) % 2**32 - 2**31 for v in exact], np.int32)


def make_inputs(spec) -> list[np.ndarray]:
    """Choose a probe's inputs; probes of one kind and the same dtypes get the same, which are then stored once."""
    from opcheck.backends.interpreter.probe_specs import BLOCK, NUMPY, ROWS, K, M, N

    what = spec.name.partition(".")[2]
    kind = "elements" if spec.bound is None and what not in SPECIAL else what
    kind = {"cumsum": "sum", "argmax": "sum", "dot_tf32": "dot", "dot_ieee": "dot", "dot_half": "dot"}.get(kind, kind)
    rng = np.random.default_rng([SEED, *f"{kind} {spec.inputs}".encode()])
    dtypes = [NUMPY[name] for name in spec.inputs]
    if spec.inputs == ("int32", "int32"):
        return [rng.integers(-(2**31), 2**31, spec.size, dtype=np.int64).astype(np.int32) for _ in dtypes]
    if what.startswith("dot"):
        counts = (M * K, K * N)
        return [rng.standard_normal(n).astype(np.float32).astype(t) for n, t in zip(counts, dtypes, strict=True)]
    if what == "atomic_add":  # `atom.add.f32` on global memory flushes subnormals (PTX), the additions do not
        return [rng.standard_normal(spec.size).astype(np.float32).astype(dtype) for dtype in dtypes]
    if what in ("sum", "cumsum", "max", "argmax", "masked_load"):
        count = spec.size if what == "masked_load" else ROWS * BLOCK
        values = rng.standard_normal(count).astype(np.float32).astype(dtypes[0])
        if what == "max":
            values[rng.integers(0, values.size, values.size // 10)] = np.nan
            values[:BLOCK] = np.nan
        return [values]
    if what == "to_float32":
        return [np.resize(_patterns(rng, dtypes[0], 256), 256)]
    if spec.bound is not None or what == "scale":
        return [_arguments(what, rng, spec.size).astype(np.float32)]
    return [_mixed(rng, dtype, spec.size) for dtype in dtypes]


def _patterns(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    if dtype.itemsize == 1:
        return np.arange(256, dtype=np.uint8).view(dtype)
    return rng.integers(0, 2 ** (8 * dtype.itemsize), count, dtype=np.uint64).astype(f"u{dtype.itemsize}").view(dtype)


def _mixed(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    """Corners of both signs, a quarter random bit patterns, the rest random magnitudes from 2^-30 to 2^20."""
    corners = np.array([*CORNERS, *(-x for x in CORNERS)])
    corners = corners.astype(np.float32).astype(dtype)
    patterns = np.resize(_patterns(rng, dtype, count // 4), count // 4)
    rest = count - corners.size - patterns.size
    scaled = rng.standard_normal(rest) * np.exp2(rng.integers(-30, 20, rest))
    values = np.concatenate([corners, patterns, scaled.astype(np.float32).astype(dtype)])
    values[values == 0] = dtype.type(1)
    return values[rng.permutation(count)]


def _arguments(what: str, rng: np.random.Generator, count: int) -> np.ndarray:
    ranges = {"exp": 80.0, "exp2": 100.0, "erf": 4.0, "tanh": 8.0, "rint": 1e4, "scale": 1e3}
    name = what.removeprefix("libdevice.")
    uniform = rng.uniform(-1.0, 1.0, count)
    if name in ranges:
        return uniform * ranges[name]
    if name == "log1p":
        return np.where(uniform > 0, uniform * 100.0, uniform * 0.9)
    return np.exp2(uniform * 60.0)


def main() -> int:
    """Write the tables; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder that gets probes.json")
    parser.add_argument("--source", choices=("gpu", "model"), default="gpu")
    options = parser.parse_args()

    from opcheck.backends.interpreter.probe_specs import SPECS
    from opcheck.backends.interpreter.selftest import execute, judge

    np.seterr(all="ignore")
    tables, problems = {}, []
    for name, spec in SPECS.items():
        inputs = make_inputs(spec)
        data = [x.tobytes() for x in inputs]
        try:
            output = model(spec, inputs).tobytes() if options.source == "model" else execute(spec, data, "cuda")
        except Exception as error:  # one kernel that this Triton cannot compile must not cost the other tables
            problems.append(f"{name}: {type(error).__name__}: {error}")
            continue
        table = {"inputs": [_text(x) for x in data], "output": _text(output)}
        within, detail = judge(spec, table, output)
        if not within:
            problems.append(f"{name}: outside its own bound: {detail}")
        if options.source == "gpu":
            _, against = judge(spec, {**table, "output": _text(model(spec, inputs).tobytes())}, output)
            detail = f"{detail}; against the model: {against}" if spec.bound is None else detail
        print(f"{name}: {detail}")
        tables[name] = table
    options.out.mkdir(parents=True, exist_ok=True)
    pool = sorted({text for table in tables.values() for text in table["inputs"]})
    for table in tables.values():
        table["inputs"] = [pool.index(text) for text in table["inputs"]]
    report = {
        "source": source(options.source),
        "environment": environment(),
        "inputs": pool,
        "probes": tables,
    }
    (options.out / "probes.json").write_text(json.dumps(report, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    print("\n".join(f"PROBLEM {problem}" for problem in problems) or "no problems")
    return 1 if problems else 0


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def source(kind: str) -> str:
    """Name what answered: `model`, or the GPU."""
    if kind == "model":
        return "model"
    import torch

    return torch.cuda.get_device_name(0)


def environment() -> dict[str, str]:
    """Return the versions that the answers depend on."""
    import torch
    import triton

    return {"python": platform.python_version(), "torch": torch.__version__, "triton": triton.__version__}


if __name__ == "__main__":
    sys.exit(main())
