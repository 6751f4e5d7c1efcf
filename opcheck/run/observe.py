"""Run a target observed: every access of its interpreted kernels is looked at, and uninitialised memory followed."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace

import torch

from opcheck.core.case import Case
from opcheck.core.measure import digest_of
from opcheck.core.memory import Breach, Observed
from opcheck.core.policy import Contract
from opcheck.core.spec import OpSpec
from opcheck.run.failure import short
from opcheck.run.poison import LARGE, LOW, NAN, poisoned
from opcheck.run.roles import RoleFailed, Run, run_role


class Observation:
    """The observed run of one case, made once: by whoever needs a run with poisoned allocations, or in the end."""

    def __init__(self, spec: OpSpec, contract: Contract, case: Case, device: torch.device) -> None:
        self._spec, self._case, self._device = spec, case, device
        self._extent = frozenset(contract.extent)
        self._found: Observed | None = None
        self._undefined: tuple[str, tuple[str, int]] | None = None

    def run(self) -> Run:
        """Run the target with poisoned allocations, and keep what was seen.

        Raises:
            RoleFailed: The target raised.
            SampleError, BadCase: The case does not fit the op.
        """
        sighted, blind = sight()
        if not sighted:
            self._found = Observed(blind=blind)
            with poisoned(NAN):
                return run_role(self._spec, self._case, "target", self._device)
        from opcheck.backends.interpreter.observer import observed

        with observed(self._extent) as observer:
            try:
                with poisoned(NAN, allocated=observer.allocated):
                    run = run_role(self._spec, self._case, "target", self._device, watch=observer)
                for name, tensor in run.tensors.items():
                    observer.returned(name, tensor)
            finally:
                self._found, self._undefined = readable(observer.found()), observer.undefined
        return run

    def found(self) -> Observed:
        """Return what was seen, running the target where nobody did yet; and what masked lanes change.

        Raises:
            RoleFailed: The target raised, and nothing was seen that explains it.
            SampleError, BadCase: The case does not fit the op.
        """
        sighted, blind = sight()
        if self._found is None and not sighted:
            return Observed(blind=blind)
        if self._found is None:
            try:
                self.run()
            except RoleFailed:
                if self._found is None or not self._found.breaches:
                    raise
        assert self._found is not None
        if self._undefined is not None:
            masked = self._masked(*self._undefined)
            self._found, self._undefined = replace(self._found, breaches=(*self._found.breaches, *masked)), None
        return self._found

    def _masked(self, kernel: str, place: tuple[str, int]) -> tuple[Breach, ...]:
        """Run the target with several contents of the masked lanes without `other`; report what comes out otherwise."""
        plain = self._digests(None)
        changed: dict[str, None] = {}
        for byte in (NAN, LARGE, LOW):
            found = self._digests(byte)
            changed |= {name: None for name in plain if found.get(name) != plain[name]}
        where = f"{short(place[0])}:{place[1]}"
        return tuple(Breach(rule="masked", tensor=name, kernel=kernel, access="load", where=where) for name in changed)

    def _digests(self, byte: int | None) -> dict[str, str]:
        """Return the results' digests, or how the run failed; equal runs give equal ones, random numbers or not."""
        from opcheck.backends.interpreter.memory import masked_lanes

        lanes = contextlib.nullcontext() if byte is None else masked_lanes(byte)
        with torch.random.fork_rng(devices=[]), poisoned(NAN), lanes:
            torch.manual_seed(0)
            try:
                run = run_role(self._spec, self._case, "target", self._device)
            except RoleFailed as failed:
                return {"the case": str(failed)}
        return {name: digest_of(value) for name, value in run.tensors.items()}


def sight() -> tuple[bool, str]:
    """Say whether kernels can be observed, and where they run unseen, why.

    Where nothing is interpreted no Triton kernel runs on the CPU, so that there is nothing to see.
    """
    from opcheck.backends.interpreter import repair

    state = repair.state()
    if state is not None and state.active:
        return True, ""
    if os.environ.get("TRITON_INTERPRET", "0") in ("", "0"):
        return False, ""
    return False, state.reason if state is not None else "the interpreter is not repaired in this process"


def readable(found: Observed) -> Observed:
    """Name the kernels' files relative to where opcheck was called."""
    return replace(found, breaches=tuple(
        replace(item, where=_line(item.where), other=_within(item.other)) for item in found.breaches
    ))  # fmt: skip


def _line(where: str) -> str:
    file, colon, line = where.rpartition(":")
    return f"{short(file)}:{line}" if colon else where


def _within(text: str) -> str:
    said, space, where = text.rpartition(" ")
    return f"{said} {_line(where)}" if space else text
