"""Kernels touch only the memory that they were given, read only what was written, and their programs do not meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from opcheck.checks.guards import complaints, examples, witness
from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, compared, example
from opcheck.core.finding import Finding
from opcheck.core.guards import Banded, Guarded
from opcheck.core.layouts import FAR
from opcheck.core.memory import MEMORY, NO_LAUNCH, Breach, Observe, Observed, Rule, Sample
from opcheck.core.outcome import Compare, Compared, Crashed, Outcome, Returned, Trial
from opcheck.core.verdict import Verdict

_CASE = "the case"
_HINTS: Mapping[Rule, str] = {
    "outside": "a missing mask or a wrong grid; on a GPU it reads or breaks a neighbour's memory, or faults",
    "around": "a row length taken for a stride, or a missing mask: the memory between is somebody else's",
    "unwritten": "memory of torch.empty is used as if it were zeros",
    "returned": "a grid that is too small, or a mask that is too narrow",
    "race": "programs of one launch have no order: use an atomic, or give each program its own elements",
    "wrapped": "widen the program's number or the stride before they are multiplied: .to(tl.int64)",
    "masked": "give the load an other, or mask what was loaded before it is reduced",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    """`memory` has no limits: an access is allowed or it is not."""


class Memory:
    """The law of memory."""

    name: ClassVar[str] = MEMORY
    law: ClassVar[str] = (
        "Every access of a kernel stays inside the tensors that it was given, reads what was written before, and meets "
        "no store of another program of the launch."
    )
    requires: ClassVar[frozenset[str]] = frozenset()
    limits: ClassVar[type] = MemoryLimits

    def applies(self, subject: Subject) -> str:
        return ""

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        """Observe what is interpreted; put bands around the rest: compiled kernels, and those of no Triton at all."""
        if compared(seen) is None:
            return (Compare(),)
        if subject.case.backend != "cpu":
            return (Guarded(),)
        found = answered(seen, Observe())
        unseen = isinstance(found, Observed) and not (found.launches or found.breaches or found.blind)
        far = FAR in subject.case.layouts.values()  # bands would have to lie around gigabytes of untouched memory
        return (Observe(), Guarded()) if unseen and not far else (Observe(),)

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        for trial, what in ((Observe(), "observed run"), (Guarded(), "run between guard bands")):
            lost = broken(seen, trial)
            if lost is not None:
                return (self._finding(_CASE, Verdict.FAIL, f"the {what} did not come back: {lost}", place=lost.where),)
        banded = answered(seen, Guarded())
        if isinstance(banded, Banded):
            return self._guarded(banded, subject.case.backend)
        found = answered(seen, Observe())
        if not isinstance(found, Observed):
            return ()
        if found.blind:
            return (self._finding(_CASE, Verdict.PASS_WITH_LIMITATIONS, f"nothing was observed: {found.blind}"),)
        if found.breaches:
            return tuple(
                self._finding(item.tensor, Verdict.FAIL, _sentence(item), _HINTS[item.rule], item.where)
                for item in found.breaches
            )
        if found.sample is not None:
            enough = Verdict.PASS if found.sample.compared else Verdict.PASS_WITH_LIMITATIONS
            return (self._finding(_CASE, enough, f"{_sampled(found.sample)}; {_witness(found)}"),)
        return (self._finding(_CASE, Verdict.PASS, _witness(found)),)

    def _guarded(self, found: Banded, backend: str) -> tuple[Finding, ...]:
        failures = tuple(self._finding(item.tensor, Verdict.FAIL, item.detail, item.hint) for item in complaints(found))
        return failures or (self._finding(_CASE, Verdict.PASS, witness(found, backend)),)

    def _finding(self, tensor: str, verdict: Verdict, detail: str, hint: str = "", place: str = "") -> Finding:
        return Finding(
            check=self.name, tensor=tensor, verdict=verdict, law=self.law, detail=detail, looks_like=hint, place=place
        )

    def controls(self) -> tuple[Control, ...]:
        place = {"kernel": "_kernel", "where": "kernel.py:9", "program": (2, 0, 0), "lane": 1}
        clean = Observed(launches=(("_kernel", 3),), accesses=12)
        some = Sample(launches=(("_kernel", 16, 4096),), compared=(("out", 2048, 524288),))
        none = Sample(launches=(("_kernel", 16, 4096),), left=(("out", "no kernel stores it"),))
        rows: list[tuple[str, Verdict, Outcome]] = [
            ("every access is inside", Verdict.PASS, Returned(evidence=clean)),
            ("no kernel is launched", Verdict.PASS, Returned(evidence=Observed())),
            ("a few programs run", Verdict.PASS, Returned(evidence=replace(clean, sample=some))),
            (
                "none of it counts",
                Verdict.PASS_WITH_LIMITATIONS,
                Returned(evidence=replace(clean, sample=none)),
            ),
            ("nothing can be observed", Verdict.PASS_WITH_LIMITATIONS, Returned(evidence=Observed(blind="no Triton"))),
            ("the observed run dies", Verdict.FAIL, Crashed(role="target", reason="was killed by SIGSEGV")),
        ]
        for rule, access in (
            *(("outside", "load"), ("around", "store"), ("unwritten", "atomic"), ("race", "store")),
            ("wrapped", "load"),
        ):
            breach = Breach(rule=rule, tensor="x_ptr", access=access, offset=387, total=387, **place)  # type: ignore[arg-type]
            rows.append((f"{rule}: {access}", Verdict.FAIL, Returned(evidence=Observed(breaches=(breach,)))))
        for rule in ("returned", "masked"):
            breach = Breach(rule=rule, tensor="out", offset=5, count=3, total=387)  # type: ignore[arg-type]
            rows.append((f"{rule}", Verdict.FAIL, Returned(evidence=Observed(breaches=(breach,)))))
        first: Seen = {Compare(): Returned(evidence=Compared(tensors=()))}
        trials: list[tuple[str, Verdict, Seen]] = [
            (name, expect, {**first, Observe(): outcome}) for name, expect, outcome in rows
        ]
        trials += [(name, expect, {**first, Guarded(): outcome}) for name, expect, outcome in examples()]
        return tuple(Control(name=name, expect=expect, seen=seen, subject=example()) for name, expect, seen in trials)


def _sentence(item: Breach) -> str:
    who = f"{item.kernel}, {item.where}: program {list(item.program)} lane {item.lane}"
    at = f"element {item.offset} of {item.tensor}"
    more = f"; {item.count} such lanes" if item.count > 1 else ""
    match item.rule:
        case "outside":
            return f"{who} {_verb(item.access)} {at}, whose memory ends at {item.total}{more}"
        case "around":
            return f"{who} {_verb(item.access)} {at}, between or beside what the tensor has of its buffer{more}"
        case "unwritten":
            return f"{who} {_verb(item.access)} {at}, which nobody has written since torch.empty{more}"
        case "returned":
            return f"{item.count} of {item.total} elements were never written, the first is number {item.offset}"
        case "race":
            times = f"; {item.count} such accesses" if item.count > 1 else ""
            return f"{who} {_verb(item.access)} {at}, as {item.other}{times}"
        case "wrapped":
            line, lane = f"{item.kernel}, {item.where}", f"program {list(item.program)} lane {item.lane}"
            instead = f"{_verb(item.access)} {at} {item.other} in place of {item.meant}"
            return f"{line}: an integer wraps; {lane} {instead}{more}"
        case "masked":
            return f"what masked lanes hold changes it: {item.where} loads without other in {item.kernel}"


def _verb(access: str) -> str:
    return "updates" if access == "atomic" else f"{access}s"


def _sampled(sample: Sample) -> str:
    launches = ", ".join(f"{ran} of {total} programs of {kernel}" for kernel, ran, total in sample.launches)
    compared = ", ".join(f"{count} of {total} elements of {tensor}" for tensor, count, total in sample.compared)
    said = [f"sampled: {launches}", f"compared: {compared or 'nothing'}"]
    said += [f"not covered: {tensor}: {why}" for tensor, why in sample.left]
    if sample.dependent:
        said.append(f"{', '.join(sample.dependent)} read what programs that were left out write")
    return "; ".join(said)


def _witness(found: Observed) -> str:
    if not found.launches:
        return NO_LAUNCH
    launches = ", ".join(f"{kernel} x {count}" for kernel, count in found.launches)
    computed = f"; pointers made from integers in {', '.join(found.computed)} are not judged" if found.computed else ""
    return f"{found.accesses} accesses in launches of {launches}{computed}"


check = Memory()
