"""Run an op that draws random numbers under many seeds, and keep counts and extremes of what it gives."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from opcheck.backends.interpreter.order import ORDERS, program_order
from opcheck.core.case import Case
from opcheck.core.draws import Changes, Drawing, Drawn, Draws, Kept, Tie, Values
from opcheck.core.floats import ulp, upcast_exact
from opcheck.core.formats import format_of
from opcheck.core.measure import digest_of, dtype_name
from opcheck.core.measured import Element, Index
from opcheck.core.outcome import Role
from opcheck.core.spec import OpSpec
from opcheck.run.poison import LARGE, NAN, poisoned
from opcheck.run.roles import Run, run_role, upstream
from opcheck.run.seeds import generators_kept, reseeded, seeded

Announce = Callable[[Case, str, Role], None]

REPEATS = (NAN, LARGE)  # under the first seed, with what `torch.empty` hands out filled with these
FURTHER: Mapping[Role, int] = {"target": 0, "reference": 1000}  # from a role's first seed to the first of all
SECOND_CALLS = 4  # one seed in so many is followed by a second call without a new one
ROUNDINGS = 64  # roundings of float32 of the largest value: what may be left where terms cancel
_MOST_CODED = 31  # runs whose changes are kept; two codes of so many bits fit into an int64
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def drawn(spec: OpSpec, case: Case, device: torch.device, trial: Draws, announce: Announce) -> Drawing:
    """Run the reference and the target under seeds of their own, several times each.

    The seeds differ, for two kernels that read one stream from opposite ends would be far apart together.

    Raises:
        RoleFailed: `samples` or a role raised.
        SampleError, BadCase: The case does not fit the op.
    """
    tracks: dict[Role, dict[str, _Track]] = {"reference": {}, "target": {}}
    ties: dict[tuple[str, str], _Tied] = {}
    first: dict[str, str] = {}
    repeats: list[dict[str, str]] = []
    finite = True

    def run(role: Role, step: int) -> Run:
        return run_role(*reseeded(spec, case, step + FURTHER[role]), role, device)

    with generators_kept(device):
        for step in range(trial.runs):
            for role, known in tracks.items():
                announce(case, f"seed {step + 1}", role)
                seeded(step + FURTHER[role])
                found = run(role, step)
                finite = finite and found.finite
                for name, value in found.tensors.items():
                    known.setdefault(name, _Track()).add(value)
                for pair in _pairs(found, case):
                    ties.setdefault(pair, _Tied()).add(found, case, pair, role)
                if role == "target" and not step:
                    first = {name: digest_of(value) for name, value in found.tensors.items()}
                if step % SECOND_CALLS == 0:
                    announce(case, f"second call under seed {step + 1}", role)
                    for name, value in run(role, step).tensors.items():
                        if name in known:
                            known[name].again(value)
        for at, byte in enumerate(REPEATS):
            order = ORDERS[at % len(ORDERS)] if device.type == "cpu" else "launch"
            announce(case, f"seed 1, repeat {at + 2}", "target")
            with program_order(order, seed=zlib.crc32(case.id.encode()) + at), poisoned(byte):
                seeded(0)
                found = run("target", 0)
            repeats.append({name: digest_of(value) for name, value in found.tensors.items()})
    both = ((name, track, tracks["reference"].get(name)) for name, track in tracks["target"].items())
    order_text = "in reversed and shuffled program order, " if device.type == "cpu" else ""
    return Drawing(
        tensors=tuple(
            _drawn(name, target, reference, sum(other.get(name) != first.get(name) for other in repeats), trial, finite)
            for name, target, reference in both
            if reference is not None and target.shape == reference.shape and target.numel
        ),
        ties=tuple(tied.result(*pair) for pair, tied in ties.items()),
        repeats=len(repeats),
        varied=f"{order_text}with poisoned allocations",
    )


class _Track:
    """One tensor of one role over its runs: what changed, how often it was not zero, and between which extremes."""

    bits: Tensor  # of the last run

    def __init__(self) -> None:
        self.runs, self.kept = 0, list[int]()

    def add(self, value: Tensor) -> None:
        """Take in the next seed's tensor `[*S]`."""
        bits, numbers = _bits(value), upcast_exact(value).reshape(-1)
        here = numbers != 0
        if not self.runs:
            self.shape, self.dtype, self.numel = tuple(value.shape), value.dtype, value.numel()
            self.across, self.in_a_row = (torch.zeros_like(bits, dtype=torch.int64) for _ in range(2))
            self.seen = torch.zeros_like(bits, dtype=torch.int32)
            self.low, self.high = torch.full_like(numbers, math.inf), torch.full_like(numbers, -math.inf)
            self.nan = torch.zeros_like(here)
        elif self.runs < _MOST_CODED:
            self.across |= (bits != self.bits).long() << (self.runs - 1)
        self.bits = bits
        self.runs += 1
        self.kept.append(int(here.sum()))
        self.seen += here
        self.nan |= numbers.isnan()
        self.low = torch.where(here, torch.minimum(self.low, numbers), self.low)
        self.high = torch.where(here, torch.maximum(self.high, numbers), self.high)

    def again(self, value: Tensor) -> None:
        """Take in the tensor of a second call under the seed just added."""
        if tuple(value.shape) == self.shape and self.runs <= _MOST_CODED:
            self.in_a_row |= (_bits(value) != self.bits).long() << (self.runs - 1)

    def index(self, flat: int) -> Index:
        """Return the place of an element."""
        return tuple(int(at) for at in torch.unravel_index(torch.tensor(flat), self.shape))


class _Tied:
    """An output and a gradient over all runs of both roles: are they zero in the same places?"""

    def __init__(self) -> None:
        self.both, self.neither, self.odd = 0, 0, 0
        self.forward, self.backward, self.total = 0, 0, 0
        self.first: Index = ()

    def add(self, run: Run, case: Case, pair: tuple[str, str], role: Role) -> None:
        output, gradient = (run.tensors[name] for name in pair)
        source = run.inputs[pair[1].removeprefix("grad ")]
        zero, flat = upcast_exact(output) == 0, upcast_exact(gradient) == 0
        counted = (upcast_exact(source) != 0) & (upcast_exact(upstream(case, pair[0], output)) != 0)
        forward, backward = zero & ~flat & counted, flat & ~zero & counted
        if role == "reference":
            self.both += int((zero & flat & counted).sum())
            self.neither += int((~zero & ~flat & counted).sum())
            self.odd += int(forward.sum() + backward.sum())
            return
        self.forward += int(forward.sum())
        self.backward += int(backward.sum())
        self.total += int(counted.sum())
        wrong = forward | backward
        if not self.first and bool(wrong.any()):
            self.first = tuple(int(at) for at in wrong.nonzero()[0])

    def result(self, output: str, gradient: str) -> Tie:
        return Tie(
            output=output, gradient=gradient, dropped=self.both, kept=self.neither, reference=self.odd,
            forward=self.forward, backward=self.backward, total=self.total, first=self.first,
        )  # fmt: skip


def _pairs(run: Run, case: Case) -> Iterator[tuple[str, str]]:
    """Yield each output through which a gradient flows with each gradient of its shape."""
    for output, value in run.outputs.items():
        if not value.dtype.is_floating_point or (case.used and output not in case.used):
            continue
        for gradient, found in run.gradients.items():
            if found is not None and found.shape == value.shape and found.numel():
                yield output, gradient


def _drawn(name: str, target: _Track, reference: _Track, unequal: int, trial: Draws, finite: bool) -> Drawn:
    eligible = (target.seen > 0) | (reference.seen > 0)
    changes = _changes(target, reference)
    odd = target.nan if finite and not bool(reference.nan.any()) else torch.zeros_like(target.nan)
    return Drawn(
        tensor=name, dtype=dtype_name(target.dtype), numel=target.numel, unequal=unequal,
        in_a_row=changes[0], across=changes[1],
        kept=Kept(
            target=tuple(target.kept), reference=tuple(reference.kept), eligible=int(eligible.sum()),
            fixed=not bool(reference.across.any()),
        ),
        values=_values(target, reference, trial.max_ulp),
        nan=int(odd.sum()), nan_at=target.index(int(odd.nonzero()[0])) if bool(odd.any()) else (),
    )  # fmt: skip


def _changes(target: _Track, reference: _Track) -> tuple[Changes, Changes]:
    """Return what changes in a row and across seeds.

    Elements with the same history in all of the reference's runs may be dropped as one, and count once.
    """
    histories = torch.unique(reference.across << _MOST_CODED | reference.in_a_row)
    coded = min(reference.runs, _MOST_CODED)
    calls, seeds = sum(1 << step for step in range(0, coded, SECOND_CALLS)), (1 << (coded - 1)) - 1
    return (
        Changes(
            target=_ones(target.in_a_row),
            reference=_ones(histories & (1 << _MOST_CODED) - 1),
            always=bool((reference.in_a_row == calls).all()),
        ),
        Changes(
            target=_ones(target.across),
            reference=_ones(histories >> _MOST_CODED),
            always=seeds > 0 and bool((reference.across == seeds).all()),
        ),
    )


def _ones(codes: Tensor) -> int:
    """Return the number of bits set in non-negative int64 `[n]`."""
    return sum(int((codes >> bit & 1).sum()) for bit in range(_MOST_CODED))


def _values(target: _Track, reference: _Track, max_ulp: float) -> Values:
    """Compare what is kept: the reference's value of an element is the same whenever it is not dropped.

    Allowed is `max_ulp ulp(f) + 64 u scale`, u being float32's roundoff at most and scale the largest value: terms of
    that size may cancel to less, and a narrow type is computed in float32.
    """
    f, low = reference.high, reference.low
    again = (reference.seen - 1).clamp(min=0)
    shown = reference.seen > 1
    numbers = torch.where(f.isfinite(), f, 0.0)
    scale = float(torch.where(shown, numbers.abs(), 0.0).max())
    allowed = torch.zeros_like(f)
    if reference.dtype.is_floating_point:
        fmt = format_of(reference.dtype)
        allowed = max_ulp * ulp(numbers, fmt) + ROUNDINGS * min(fmt.unit, format_of("float32").unit) * scale
    steady = bool((_gap(f, low)[shown] <= allowed[shown]).all())
    shared = shown & (target.seen > 0)
    agreeing, compared = int(again.sum()), int(shared.sum())
    if not compared:
        return Values(steady=steady, agreeing=agreeing)
    gap = torch.maximum(_gap(target.high, f), _gap(target.low, low))
    excess = torch.where(shared & (gap > 0), gap / allowed, 0.0)
    ratios = (target.high / f)[shared & f.isfinite() & target.high.isfinite() & (f != 0)]
    at = int(excess.argmax())
    worst = Element(
        index=target.index(at), golden=math.nan, reference=float(f[at]),
        target=float(target.high[at] if _gap(target.high, f)[at] >= _gap(target.low, low)[at] else target.low[at]),
    )  # fmt: skip
    return Values(
        steady=steady, agreeing=agreeing, compared=compared, excess=float(excess[at]), worst=worst,
        ratio=float(ratios.median()) if ratios.numel() else math.nan,
    )  # fmt: skip


def _gap(one: Tensor, other: Tensor) -> Tensor:
    """Return the distance of two float64 `[n]`: 0 where both are the same Inf or NaN, Inf where only one is finite."""
    same = (one == other) | (one.isnan() & other.isnan())
    return torch.where(same, 0.0, (one - other).abs().nan_to_num(nan=math.inf))


def _bits(value: Tensor) -> Tensor:
    """Return the bit pattern of `[*S]` as integers, flat."""
    return value.detach().contiguous().reshape(-1).view(_WORDS[value.element_size()]).clone()
