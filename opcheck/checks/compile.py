"""Every kernel and every configuration of it builds for the targets of the policy, and can be launched there.

Nothing is run: Triton compiles, without a GPU, what the op launches, for the types and the alignment of the arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, example
from opcheck.core.building import COMPILE, NO_KERNEL, TARGETS, Binary, Build, Built
from opcheck.core.finding import Finding
from opcheck.core.outcome import Crashed, Outcome, Returned, Trial
from opcheck.core.policy import limit
from opcheck.core.verdict import Verdict

_THE_OP = "the op"
_LIMITED = Verdict.PASS_WITH_LIMITATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileLimits:
    """Limits of `compile`."""

    targets: tuple[str, ...] = limit(
        ("sm_90",),
        "GPUs to build for from level standard on; an empty list leaves it out.",
        loose="neither",
        choices=tuple(TARGETS),
    )
    targets_full: tuple[str, ...] = limit(
        (), "GPUs to build for at level full besides.", loose="neither", choices=tuple(TARGETS)
    )
    spills: int = limit(
        32, "Words of a thread, 32 bits each, that may lie in local memory, as spilled registers do.", zero=True
    )
    tf32: bool = limit(False, "Whether dots of float32 may round their operands to TF32.")


class Compile:
    """The law of building."""

    name: ClassVar[str] = COMPILE
    law: ClassVar[str] = "Every kernel that the op launches builds for each target and fits into a block there."
    requires: ClassVar[frozenset[str]] = frozenset()
    limits: ClassVar[type] = CompileLimits

    def applies(self, subject: Subject) -> str:
        if subject.level == "quick":
            return "kernels are built from level standard on"
        if not subject.representative:
            return "kernels are built for the representative case of each dtype"
        return ""

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        trial = _build(subject, limits)
        return (trial,) if trial.targets else ()

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        trial = _build(subject, limits)
        lost = broken(seen, trial)
        if lost is not None:
            return (self._finding(_THE_OP, Verdict.FAIL, f"the build did not come back: {lost}", lost.where),)
        found = answered(seen, trial)
        if not isinstance(found, Built):
            return ()
        if found.blind:
            return (self._finding(_THE_OP, _LIMITED, f"nothing was built: {found.blind}"),)
        allowed: CompileLimits = limits(subject.case.dtypes[0])
        findings = [*self._failures(found), *self._remarks(found, allowed)]
        findings += [self._finding(_THE_OP, _LIMITED, f"not built: {what}: {why}") for what, why in found.missing]
        if figures := _figures(item for item in found.binaries if not item.problem):
            findings.append(self._finding(_THE_OP, Verdict.PASS, figures))
        return tuple(findings) or (self._finding(_THE_OP, Verdict.PASS, NO_KERNEL),)

    def _failures(self, found: Built) -> Iterator[Finding]:
        """Yield what does not build or cannot be launched; configurations that the tuner leaves out only limit."""
        left_out: dict[tuple[str, str], list[Binary]] = {}
        for item in found.binaries:
            if _left_out(item, found):
                left_out.setdefault((item.kernel, item.target), []).append(item)
            elif item.problem or item.excess:
                yield self._finding(
                    item.kernel, Verdict.FAIL, f"{_named(item)}: {_trouble(item)}", item.line or item.where
                )
        for (kernel, target), items in left_out.items():
            configs = ", ".join(str(config) for config in sorted({item.config for item in items}))
            detail = f"{_named(items[0])}: {_trouble(items[0])}; for {target} the autotuner leaves out {configs}"
            yield self._finding(kernel, _LIMITED, detail, items[0].line or items[0].where)

    def _remarks(self, found: Built, allowed: CompileLimits) -> Iterator[Finding]:
        """Yield what builds and is not as one would have it, each kernel and line once for all targets."""
        said: dict[tuple[str, str, str], list[str]] = {}
        for item in found.binaries:
            for place, text in _worth_saying(item, allowed):
                targets = said.setdefault((item.kernel, place, text), [])
                targets += [item.target] if item.target not in targets else []
        for (kernel, place, text), targets in said.items():
            yield self._finding(kernel, _LIMITED, f"{text} ({', '.join(targets)})", place)
        for item in _heaviest(found, allowed.spills):
            text = f"{item.spills} words of each thread lie in local memory, allowed {allowed.spills}"
            numbers = {"spills": float(item.spills), "registers": float(item.registers)}
            detail = f"{_named(item)}: {text}; {item.registers} registers ({item.target})"
            yield replace(self._finding(item.kernel, _LIMITED, detail, item.where), numbers=numbers)

    def _finding(self, tensor: str, verdict: Verdict, detail: str, place: str = "") -> Finding:
        return Finding(check=self.name, tensor=tensor, verdict=verdict, law=self.law, detail=detail, place=place)

    def controls(self) -> tuple[Control, ...]:
        good = Binary(kernel="_kernel", where="kernel.py:9", target="sm_90", registers=40, spills=0, threads=128)
        large = replace(good, shared=TARGETS["sm_90"].shared + 1)
        both = (replace(large, config=0), replace(good, config=1))
        rows: list[tuple[str, Verdict, Outcome]] = [
            ("a kernel builds", Verdict.PASS, _returned(good)),
            ("no kernel is launched", Verdict.PASS, _returned()),
            (
                "a kernel does not build",
                Verdict.FAIL,
                _returned(replace(good, problem="ValueError: no", line="k.py:12")),
            ),
            ("all the shared memory of a block", Verdict.PASS, _returned(replace(large, shared=large.shared - 1))),
            ("one byte of shared memory too many", Verdict.FAIL, _returned(large)),
            ("more threads than a block has", Verdict.FAIL, _returned(replace(good, threads=2048))),
            ("one of two configurations is too large", _LIMITED, _returned(*both, offered=2)),
            ("all configurations are too large", Verdict.FAIL, _returned(both[0], replace(large, config=1), offered=2)),
            ("as many spills as allowed", Verdict.PASS, _returned(replace(good, spills=32))),
            ("one spill more", _LIMITED, _returned(replace(good, spills=33))),
            (
                "one of two configurations spills",
                Verdict.PASS,
                _returned(replace(good, spills=99, config=0), replace(good, config=1), offered=2),
            ),
            (
                "both configurations spill",
                _LIMITED,
                _returned(replace(good, spills=99, config=0), replace(good, spills=40, config=1), offered=2),
            ),
            ("FP64 operations", _LIMITED, _returned(replace(good, double="kernel.py:12"))),
            ("a dot in TF32", _LIMITED, _returned(replace(good, tf32="kernel.py:12"))),
            ("atomic additions in FP16", _LIMITED, _returned(replace(good, atomics="float16 at kernel.py:12"))),
            ("a target without an assembler", _LIMITED, Returned(evidence=Built(missing=(("sm_90", "no ptxas"),)))),
            ("nothing can be built", _LIMITED, Returned(evidence=Built(blind="no Triton"))),
            ("the compiler dies", Verdict.FAIL, Crashed(role="target", reason="was killed by SIGABRT")),
        ]
        trial = _build(example(), lambda dtype: CompileLimits())
        return tuple(
            Control(name=name, expect=expect, seen={trial: outcome}, subject=example())
            for name, expect, outcome in rows
        )


def _returned(*binaries: Binary, offered: int = 0) -> Returned:
    return Returned(evidence=Built(binaries=binaries, offered={"_kernel": offered} if offered else {}))


def _build(subject: Subject, limits: LimitsOf) -> Build:
    """Return what is to be built; the first dtype of the contract stands for all in what is not about types."""
    wanted: CompileLimits = limits(subject.case.dtypes[0])
    full = subject.level == "full"
    return Build(
        targets=tuple(dict.fromkeys((*wanted.targets, *(wanted.targets_full if full else ())))),
        thorough=full or subject.case.dtype == subject.contract.dtypes[0],
        every_shape=full,
    )


def _left_out(item: Binary, found: Built) -> bool:
    """Say whether the autotuner goes on without this configuration: it has others that fit, or that were not built."""
    if item.config < 0 or not (item.excess or item.tolerated):
        return False
    same = [other for other in found.binaries if (other.kernel, other.target) == (item.kernel, item.target)]
    fit = any(not (other.problem or other.excess) for other in same)
    return fit or len({other.config for other in same}) < found.offered.get(item.kernel, 0)


def _trouble(item: Binary) -> str:
    at = f" at {item.line}" if item.line else ""
    return item.excess or f"does not build for {item.target}{at}: {item.problem}"


def _heaviest(found: Built, allowed: int) -> Iterator[Binary]:
    """Yield of each kernel and target the build that spills most; of an autotuned one only where all of them spill."""
    groups: dict[tuple[str, str, int], list[Binary]] = {}
    for item in found.binaries:
        if not (item.problem or item.excess):
            groups.setdefault((item.kernel, item.target, item.turn), []).append(item)
    told: dict[tuple[str, str], Binary] = {}
    for (kernel, target, _), items in groups.items():
        tuned = items[0].config >= 0
        if tuned and len({item.config for item in items}) < found.offered.get(kernel, 0):
            continue  # the tuner may choose one that was not built
        heavy = (min if tuned else max)(items, key=lambda item: item.spills)
        before = told.get((kernel, target))
        if heavy.spills > allowed and (before is None or heavy.spills > before.spills):
            told[kernel, target] = heavy
    yield from told.values()


def _worth_saying(item: Binary, allowed: CompileLimits) -> Iterator[tuple[str, str]]:
    """Yield lines of the kernel, each with what is to be said of it."""
    if item.double:
        said = f"FP64 operations without an FP64 argument, the first at {item.double}; a GPU has few FP64 units"
        yield item.double, said
    if item.tf32 and not allowed.tf32:
        said = (
            f"the dot at {item.tf32} rounds its float32 operands to TF32, 10 bits; say input_precision, or tf32 = true "
            f"under {COMPILE} in registry.toml"
        )
        yield item.tf32, said
    if item.atomics:
        said = f"atomic additions in {item.atomics}: each of them rounds, in an order that varies"
        yield item.atomics.partition(" at ")[2], said


def _named(item: Binary) -> str:
    config = f" configuration {item.config}" if item.config >= 0 else ""
    return f"{item.kernel}, {item.where}{config}{f' ({item.constants})' if item.constants else ''}"


def _figures(binaries: Iterable[Binary]) -> str:
    """Say what was built, and what the hungriest kernel takes on each target; empty where nothing was."""
    items = tuple(binaries)
    if not items:
        return ""
    kernels = len({(item.kernel, item.where) for item in items})
    told = [_most(target, items) for target in dict.fromkeys(item.target for item in items)]
    return f"{len(items)} builds of {kernels} {'kernel' if kernels == 1 else 'kernels'}; {'; '.join(told)}"


def _most(target: str, items: tuple[Binary, ...]) -> str:
    own = [item for item in items if item.target == target]
    registers, spills = max(item.registers for item in own), max(item.spills for item in own)
    counted = f"{registers} registers and {spills} spilled" if registers >= 0 else "registers unknown"
    return f"{target} at most {counted}, {max(item.shared for item in own)} bytes of shared memory"


check = Compile()
