"""Run one cell (an op, a size, an element type, a family of values) over its seeds."""

from __future__ import annotations

import math
import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from benchmarks.calibration.evidence import LAWS, Bench, Judgement, Oracle, split, subject_of, to_cpu
from benchmarks.calibration.faults import PLANTED, farthest
from benchmarks.calibration.kernel import Kernel, Op, Tensors, differentiable, draw
from benchmarks.calibration.settings import STANDING, Setting
from benchmarks.calibration.tally import Caught, Fault, Right, Tally
from opcheck.checks.protocol import Seen
from opcheck.core import measure
from opcheck.core.case import Case, Sample
from opcheck.core.formats import format_of
from opcheck.core.laws import SIBLING_SEEDS, siblings_needed
from opcheck.core.measured import Measured
from opcheck.core.outcome import Compared
from opcheck.core.policy import WIDE
from opcheck.core.spec import OpSpec
from opcheck.core.verdict import Verdict
from opcheck.run.elements import input_conditions
from opcheck.run.oracle import exact_settings
from opcheck.run.roles import upstream

FULL_SIZE = 1536  # elements; larger tensors get proportionally fewer seeds
FEWEST = 2  # seeds of a cell
CHUNK = 2**21  # elements of a batch
FAULT_EVERY = 10  # one seed in so many gets the planted faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One batch of comparisons, a value that is sent to a worker."""

    op: Op
    sizes: Mapping[str, int]
    dtype: str
    values: str
    first: int
    seeds: int
    backend: str

    @property
    def where(self) -> str:
        """The sizes in words: `9x129`."""
        return "x".join(map(str, self.sizes.values()))


def cells(ops: tuple[Op, ...], seeds: int, backend: str) -> Iterator[Cell]:
    """Yield the cells: the seeds are shared out over an op's families, and large tensors get fewer.

    Families stand innermost, so that a stride without a common factor with 4 and 5 still meets them all.
    """
    for op in ops:
        for dtype in op.dtypes:
            for sizes in op.shapes:
                numel = max(_numel(dims, sizes) for dims in op.inputs.values())
                families = op.families if numel > 1 else op.families[:2]
                share = seeds * min(1.0, FULL_SIZE / numel) / len(families)
                count = max(FEWEST, round(share))
                step = max(1, CHUNK // numel)
                for values in families:
                    for first in range(0, count, step):
                        yield Cell(
                            op=op, sizes=sizes, dtype=dtype, values=values, first=first, seeds=min(step, count - first),
                            backend=backend,
                        )  # fmt: skip


def run(cell: Cell, settings: tuple[Setting, ...] = ()) -> Tally:
    """Run every reference, target and fault of a cell and judge all of it, its first seed under `settings` too."""
    with Setting(name="no law reads more than the worst", laws=(), constant=(measure, "WORST_KEPT", 1)).applied():
        return _run_cell(cell, settings)


def _run_cell(cell: Cell, settings: tuple[Setting, ...]) -> Tally:
    op, device, tally = cell.op, torch.device(cell.backend), Tally()
    draws = cell.seeds + _siblings(cell)
    subject = subject_of(op, cell.sizes, cell.dtype, cell.values, cell.first, cell.backend)
    inputs = {name: value.to(device) for name, value in draw(
        op, cell.sizes, cell.dtype, cell.values, cell.first, draws).items()}  # fmt: skip
    with exact_settings(double=True):
        wide = {name: value.double() for name, value in inputs.items()}
        dy = upstream(subject.case, "out", op.golden(*wide.values()))
        golden = to_cpu(differentiable(op.golden)(wide, dy))
    with exact_settings(double=False):
        references = {name: _run(kernel, inputs, dy, cell.dtype) for name, kernel in op.references.items()}
    conditions = _conditions(op, subject.case, inputs, golden, cell.dtype)
    oracles = {
        name: Oracle(golden=golden, reference=tensors, conditions=conditions) for name, tensors in references.items()
    }
    apt = {
        name: kernel for name, kernel in op.targets.items() if name not in op.zero_mean or cell.values != "large_mean"
    }
    targets = {name: _run(kernel, inputs, dy, cell.dtype) for name, kernel in apt.items()}
    borderline = {name: _run(kernel, inputs, dy, cell.dtype) for name, kernel in op.borderline.items()}
    wrong = {name: _run(kernel, inputs, dy, cell.dtype) for name, kernel in op.faults.items()}
    names = list(oracles)
    # Cells with few seeds start elsewhere each, so that together they meet every pair.
    turn = cell.first + zlib.crc32(f"{cell.where} {cell.values}".encode())
    for at in range(cell.seeds):
        reference = names[(turn + at) % len(names)]
        bench = Bench(op=op, subject=subject, oracle=oracles[reference], at=at)
        others = settings if at == 0 else ()
        for name in _pair(list(targets), turn + at):
            coarse = op.coarse.get(name) if cell.dtype not in WIDE else None
            if name != reference and (coarse is None or reference in coarse):
                _right(tally, cell, bench, name, reference, split(targets[name], at), others)
        for name, tensors in borderline.items():
            _right(tally, cell, bench, name, reference, split(tensors, at), (), tally.borderline)
        if (cell.first + at) % FAULT_EVERY == 0:
            first = next(tensors for tensors in targets.values() if tensors.keys() >= golden.keys())
            for fault, faulty in _faulty(cell, first, golden, wrong, at):
                _fault(tally, cell, bench, fault, faulty, split(first, at), others)
    return tally


def _run(kernel: Kernel, inputs: Tensors, dy: torch.Tensor, dtype: str) -> Tensors:
    return to_cpu(kernel(inputs, dy.to(getattr(torch, dtype))))


def _pair(names: list[str], seed: int) -> list[str]:
    """Return two of the targets, another two for each seed, so that every kernel meets every reference."""
    first = seed % len(names)
    second = (first + 1 + (seed // len(names)) % max(len(names) - 1, 1)) % len(names)
    return list(dict.fromkeys((names[first], names[second])))


def _right(
    tally: Tally, cell: Cell, bench: Bench, kernel: str, reference: str, target: Tensors, others: tuple[Setting, ...],
    into: dict[Right, array[float]] | None = None,
) -> None:  # fmt: skip
    for setting, found, evidence, _ in _judgements(cell, bench, target, others):
        for item in found:
            key = Right(
                setting, item.law, _dtype(evidence, item.tensor), cell.op.name, kernel, reference, cell.where,
                cell.values, item.tensor,
            )  # fmt: skip
            if item.verdict is Verdict.INCONCLUSIVE:
                tally.invalid[key] = tally.invalid.get(key, 0) + 1
                continue
            (tally.ratios if into is None else into).setdefault(key, array("d")).append(item.ratio)
            if item.verdict is Verdict.FAIL and into is None:
                tally.alarms[key] = tally.alarms.get(key, 0) + 1
                tally.tell(key, f"{cell.dtype} {cell.where} {cell.values} vs {reference}, {item.tensor}: {item.detail}")


def _fault(
    tally: Tally, cell: Cell, bench: Bench, fault: str, faulty: Tensors, right: Tensors, others: tuple[Setting, ...]
) -> None:  # fmt: skip
    for setting, found, evidence, seen in _judgements(cell, bench, faulty, others):
        for item in evidence.tensors:
            golden = bench.oracle.golden[item.tensor][bench.at]
            own = farthest(right[item.tensor], golden)
            # A faulty kernel is a kernel of its own: its errors count from golden, and where they are a right kernel's
            # (in another tensor, or because the term that it loses is 0) there is no fault.
            planted = fault in PLANTED
            size = farthest(faulty[item.tensor], right[item.tensor] if planted else golden)
            if not size or (not planted and size <= own + item.rounding_floor):
                continue
            mine = [judgement for judgement in found if judgement.tensor == item.tensor]
            first = next(
                (one.law for law in LAWS for one in mine if one.law == law and one.verdict is Verdict.FAIL), ""
            )
            gate = bench.gate(item, seen)
            above = gate.gate_valid and size > gate.value + own
            open_gate = any(one.verdict is Verdict.INCONCLUSIVE for one in mine)
            unit = max(gate.scale, gate.absolute_floor)
            key = Fault(setting, fault, item.dtype, cell.op.name, cell.where, cell.values, item.tensor)
            counted = Caught(
                planted=1, above=int(above), above_missed=int(above and not first),
                unjudged=int(open_gate and not first), first={first: 1} if first else {},
                limit=gate.value / unit if gate.gate_valid and unit else 0.0,
                largest_missed=0.0 if first or open_gate else size / unit if unit else math.inf,
            )  # fmt: skip
            tally.faults.setdefault(key, Caught()).add(counted)


def _judgements(
    cell: Cell, bench: Bench, target: Tensors, others: tuple[Setting, ...]
) -> Iterator[tuple[str, list[Judgement], Compared, Seen]]:
    evidence = bench.measured(target)
    seen = bench.seen(target, evidence, {})
    yield STANDING, bench.judged(target, seen, {}, tuple(LAWS)), evidence, seen
    wide = any(item.dtype in WIDE for item in evidence.tensors)
    for setting in others:
        if setting.wide is not None and setting.wide is not wide:
            continue
        with setting.applied():
            again = bench.measured(target) if setting.remeasure else evidence
            seen = bench.seen(target, again, setting.limits)
            yield setting.name, bench.judged(target, seen, setting.limits, setting.laws), again, seen


def _faulty(
    cell: Cell, right: Tensors, golden: Tensors, wrong: Mapping[str, Tensors], at: int
) -> Iterator[tuple[str, Tensors]]:
    """Yield the faulty targets of one draw, each with only the tensors that the fault touches."""
    for name, tensors in wrong.items():
        yield name, split({key: value for key, value in tensors.items() if key in golden}, at)
    one = slice(at, at + 1)
    for name, fault in PLANTED.items():
        if (fault.families and cell.values not in fault.families) or (fault.narrow and cell.dtype in WIDE):
            continue
        for key, value in right.items():
            if key.startswith("grad ") and not fault.gradients:
                continue
            if cell.op.cast:
                continue
            made = fault.make(value[one], golden[key][one])
            if made is not None:
                yield name, {key: made[0]}


def _conditions(op: Op, case: Case, inputs: Tensors, golden: Tensors, dtype: str) -> Tensors:
    """Return the conditions of a whole batch of an elementwise op: elements know nothing of each other.

    The law asks for none in narrow types.
    """
    if op.kind != "elementwise":
        return {}
    if dtype not in WIDE or op.cast:
        return {name: torch.zeros_like(value) for name, value in golden.items()}
    spec = OpSpec(
        name=case.op, target=op.golden, reference=op.golden, golden=op.golden,
        samples=lambda given: Sample(*inputs.values()),
    )  # fmt: skip
    device = next(iter(inputs.values())).device
    return {name: condition.cpu() for name, (_, condition) in input_conditions(spec, case, device).items()}


def _siblings(cell: Cell) -> int:
    """Return how many draws the neediest tensor asks for beyond the seeds."""
    sizes = [_numel(dims, cell.sizes) for dims in cell.op.inputs.values()]
    if cell.op.kind == "reduction":
        sizes.append(cell.sizes["rows"])
    dtype = cell.op.cast or cell.dtype
    needs = (siblings_needed(Measured(tensor="", dtype=dtype, shape=(), judged=size)) for size in sizes)
    return max(*needs, SIBLING_SEEDS)


def _numel(dims: tuple[str, ...], sizes: Mapping[str, int]) -> int:
    count = 1
    for dim in dims:
        count *= sizes[dim]
    return count


def _dtype(evidence: Compared, tensor: str) -> str:
    found = evidence.find(tensor)
    return found.dtype if found else format_of("float64").name
