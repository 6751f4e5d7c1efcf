"""Run a target between guard bands and with poisoned allocations, and say what it did beside its tensors."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from opcheck.backends.cuda.witness import hooked, profiled
from opcheck.backends.launches import recorded
from opcheck.core.case import Case
from opcheck.core.guards import Banded, Kernel, Source, Swayed, Trespass, Unwritten, launched
from opcheck.core.measure import digest_of
from opcheck.core.policy import Contract
from opcheck.core.spec import OpSpec
from opcheck.run.guards import Guards, Pattern
from opcheck.run.poison import LARGE, NAN
from opcheck.run.roles import Run, run_role

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(slots=True, kw_only=True)
class _Seen:
    """One run: its results, and its guards."""

    run: Run
    guards: Guards
    trespasses: tuple[Trespass, ...]
    grids: Counter[tuple[str, tuple[int, ...]]]
    hooked: Counter[str]
    kernels: tuple[Kernel, ...] | None = None
    unseen: str = ""


class GuardedRuns:
    """The guarded runs of one case: two with unlike patterns, two more where their results differ."""

    def __init__(self, spec: OpSpec, contract: Contract, case: Case, device: torch.device) -> None:
        self._spec, self._contract, self._case, self._device = spec, contract, case, device

    def banded(self) -> Banded:
        """Run the target and return what was seen.

        Raises:
            RoleFailed: The target raised.
            SampleError, BadCase: The case does not fit the op.
        """
        first = self._run("nan", NAN)
        second = self._run("numbers", LARGE, profile=self._device.type == "cuda" and not first.grids)
        unwritten, differing = [], []
        for name, value in first.run.tensors.items():
            other = second.run.tensors.get(name)
            if other is None or other.shape != value.shape or other.dtype != value.dtype or not value.numel():
                continue
            holes = first.guards.poisoned(value) & second.guards.poisoned(other)
            if bool(holes.any()):
                unwritten.append(_unwritten(name, holes))
            if bool((~holes & (_bits(value) != _bits(other))).any()):
                differing.append(name)
        return Banded(
            given=first.guards.count,
            allocated=first.guards.allocated,
            launches=launched(first.grids, first.hooked),
            kernels=second.kernels,
            unseen=second.unseen,
            trespasses=_merged(first.trespasses, second.trespasses),
            unwritten=tuple(unwritten),
            swayed=tuple(self._swayed(first, second, differing)) if differing else (),
        )

    def _swayed(self, first: _Seen, second: _Seen, names: list[str]) -> Iterator[Swayed]:
        """Say of each result whether the bands or the poison changed it: each is changed alone."""
        again, mixed = self._run("nan", NAN), self._run("numbers", NAN)
        for name in names:
            value = first.run.tensors[name]
            repeated, between, other = (seen.run.tensors[name] for seen in (again, mixed, second))
            holes = first.guards.poisoned(value) & second.guards.poisoned(other)
            nan_only = not self._deterministic(name) or digest_of(value) != digest_of(repeated)
            sources: tuple[tuple[Source, Tensor], ...] = (("bands", value), ("poison", other))
            for by, changed in sources:
                wrong = ~holes & (_nan_in_one(between, changed) if nan_only else _bits(between) != _bits(changed))
                if nan_only:
                    wrong &= ~_nan_in_one(value, repeated)
                if bool(wrong.any()):
                    yield Swayed(
                        tensor=name, by=by, offset=int(wrong.nonzero()[0]), count=int(wrong.sum()),
                        total=wrong.numel(), nan_only=nan_only,
                    )  # fmt: skip

    def _deterministic(self, name: str) -> bool:
        contract = self._contract
        return contract.deterministic_backward if name.startswith("grad ") else contract.deterministic_forward

    def _run(self, bands: Pattern, poison: int, *, profile: bool = False) -> _Seen:
        guards = Guards(bands=bands, poison=poison)
        devices = [torch.cuda.current_device()] if self._device.type == "cuda" else []
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.random.fork_rng(devices=devices))
            torch.manual_seed(0)  # a random op draws the same numbers in every run
            recording = stack.enter_context(recorded())
            names = stack.enter_context(hooked())
            kernels = stack.enter_context(profiled()) if profile else None
            run = run_role(self._spec, self._case, "target", self._device, memory=guards)
        return _Seen(
            run=run,
            guards=guards,
            trespasses=guards.trespasses(),
            grids=Counter((item.kernel, item.grid) for item in recording.launches),
            hooked=names,
            kernels=None if kernels is None or kernels.unseen else kernels.found,
            unseen="" if kernels is None else kernels.unseen,
        )


def _unwritten(name: str, holes: Tensor) -> Unwritten:
    return Unwritten(tensor=name, offset=int(holes.nonzero()[0]), count=int(holes.sum()), total=holes.numel())


def _merged(first: tuple[Trespass, ...], second: tuple[Trespass, ...]) -> tuple[Trespass, ...]:
    """Return what either run saw, once for each band: the one that changed more bytes."""
    found = {(item.tensor, item.side): item for item in first}
    for item in second:
        before = found.get((item.tensor, item.side))
        if before is None or item.count > before.count:
            found[item.tensor, item.side] = item
    return tuple(found.values())


def _bits(value: Tensor) -> Tensor:
    """Return the bits of `[*S]` as integers, flat; of complex numbers those of both parts in one row."""
    flat = value.detach().contiguous().reshape(-1)
    if flat.element_size() == 16:
        return flat.view(torch.int64).view(-1, 2).sum(1)
    return flat.view(_WORDS[flat.element_size()])


def _nan_in_one(one: Tensor, other: Tensor) -> Tensor:
    """Return where exactly one of two `[*S]` is NaN, flat."""
    if not one.dtype.is_floating_point:
        return torch.zeros(one.numel(), dtype=torch.bool, device=one.device)
    left, right = (item.detach().reshape(-1).to(torch.float32).isnan() for item in (one, other))
    return left != right
