"""Run the self-test: small kernels under the interpreter against stored tables of what a GPU answered."""

from __future__ import annotations

import functools
import importlib
import json
from base64 import b64decode
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from opcheck.backends.interpreter import repair
from opcheck.backends.interpreter.dtypes import Array, bits

if TYPE_CHECKING:
    from opcheck.backends.interpreter.probe_specs import Spec

#: Right in the plain interpreter too, but for the fine points that the probes test.
_TRUSTED_PLAIN = frozenset({"float16", "float32", "float64"})
_REPAIRED = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The answer of one probe.

    Attributes:
        name: `dtype.what`, such as `bfloat16.from_float32`.
        dtype: The dtype whose verdicts depend on it.
        passed: Whether the interpreter gave a GPU's bits, or stayed within the bound where the order is free.
        detail: What was measured, in one sentence.
    """

    name: str
    dtype: str
    passed: bool
    detail: str


@functools.cache
def _tables() -> dict[str, Any]:
    path = resources.files(__package__).joinpath("tables", "probes.json")
    if not path.is_file():
        return {"source": "missing", "probes": {}}
    tables: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for table in tables["probes"].values():  # stored once: many probes share their inputs
        table["inputs"] = [tables["inputs"][index] for index in table["inputs"]]
    return tables


def tables_source() -> str:
    """Return where the tables come from: the GPU's name, or `model` while they are computed and not measured."""
    return str(_tables()["source"])


@functools.cache
def probes() -> tuple[Probe, ...]:
    """Run every probe once a process; empty where the repair is not active."""
    installed = repair.state()
    if installed is None or not installed.active:
        return ()
    memory = importlib.import_module("opcheck.backends.interpreter.memory")
    specs: dict[str, Spec] = importlib.import_module("opcheck.backends.interpreter.probe_specs").SPECS
    with memory.observing(None):
        return tuple(_run(spec, _tables()["probes"].get(name)) for name, spec in specs.items())


@functools.cache
def trusted(dtype: str) -> str:
    """Return why verdicts of a torch `dtype` must be refused, in one sentence; empty where they may be given."""
    installed = repair.install()
    if not installed.active:
        if dtype in _TRUSTED_PLAIN or not dtype.startswith(("bfloat", "float")):
            return ""
        return f"{dtype} is wrong in Triton's plain interpreter. {installed.reason}"
    failed = [probe for probe in probes() if probe.dtype == dtype and not probe.passed]
    if failed:
        return f"The interpreter's self-test failed for {dtype}: {failed[0].name}: {failed[0].detail}"
    if dtype.startswith(("bfloat", "float")) and dtype not in _TRUSTED_PLAIN | _REPAIRED:
        return f"The interpreter does not compute {dtype} as a GPU does."
    return ""


def _run(spec: Spec, table: dict[str, Any] | None) -> Probe:
    if table is None:
        return Probe(name=spec.name, dtype=spec.dtype, passed=False, detail="There is no table for this probe.")
    try:
        produced = execute(spec, [b64decode(text) for text in table["inputs"]], "cpu")
    except Exception as error:  # a kernel that raises has failed its probe; doctor prints why
        return Probe(name=spec.name, dtype=spec.dtype, passed=False, detail=f"{type(error).__name__}: {error}")
    passed, detail = judge(spec, table, produced)
    return Probe(name=spec.name, dtype=spec.dtype, passed=passed, detail=detail)


def execute(spec: Spec, inputs: list[bytes], device: str) -> bytes:
    """Run one probe's kernel on `device` and return the output's bytes."""
    import torch

    tensors = [
        torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype)).to(device)
        for data, dtype in zip(inputs, spec.inputs, strict=True)
    ]
    output = torch.zeros(spec.size, dtype=getattr(torch, spec.output), device=device)
    spec.launch(tensors, output)
    return output.cpu().view(torch.uint8).numpy().tobytes()


@np.errstate(all="ignore")
def judge(spec: Spec, table: dict[str, Any], produced: bytes) -> tuple[bool, str]:
    """Compare an output with the table's, bit for bit or within the probe's bound; says what was measured."""
    answer = decode(produced, spec.output)
    stored = decode(b64decode(table["output"]), spec.output)
    if spec.bound is None:
        differs = (bits(answer) != bits(stored)) & ~(_nan(answer) & _nan(stored))
        detail = f"{np.count_nonzero(differs)} of {answer.size} elements differ from the table"
        if differs.any():
            place = int(np.argmax(differs))
            detail += f", first at {place}: {answer[place]} against {stored[place]}"
        return not differs.any(), detail
    inputs = [
        decode(b64decode(text), dtype).astype(np.float64)
        for text, dtype in zip(table["inputs"], spec.inputs, strict=True)
    ]
    exact, allowed = spec.bound(inputs)
    unrounded = answer.astype(np.float64)
    used = float(np.max(np.abs(unrounded - exact) / np.maximum(allowed, np.finfo(np.float64).tiny)))
    share = float(np.mean(answer != exact.astype(np.float32).astype(answer.dtype)))
    detail = f"{used:.2g} of the allowed error; {share:.0%} differ from the exact answer rounded once"
    return bool(used <= 1.0 and share >= spec.inexact), detail


def decode(data: bytes, dtype: str) -> Array:
    """Read bytes as a NumPy array of a torch dtype."""
    from opcheck.backends.interpreter.probe_specs import NUMPY

    return np.frombuffer(data, NUMPY[dtype])


def _nan(values: Array) -> Array:
    return np.not_equal(values, values)
