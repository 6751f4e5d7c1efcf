"""Put together what the cases of an audit reached of its kernels, and say where that is less than is asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from opcheck.core.kernel_coverage import (
    BLOCK,
    COVERAGE,
    PARTLY,
    PRAGMA,
    STATES,
    CoverageLimits,
    Difference,
    Gap,
    KernelCoverage,
    MaskSeen,
    Ran,
    Source,
)
from opcheck.core.policy import Policy, limits_for


def merged(source: Source, ran: Iterable[tuple[str, Ran]]) -> KernelCoverage:
    """Put together what was reached of one function.

    Args:
        ran: What was reached, each with the op whose case did.
    """
    by_launch: dict[str, _Reached] = defaultdict(_Reached)
    ops: set[str] = set()
    constants: dict[str, Mapping[str, str]] = {}
    for op, item in ran:
        ops.add(op)
        text = _specialisation(item, source)
        constants[text] = item.constants
        by_launch[text].add(item.statements, item.masks)
    whole = _Reached()
    for part in by_launch.values():
        whole.add(part.statements, part.masks)
    lines = _lines(source)
    missing = dict(_missing(source, whole.statements))
    return KernelCoverage(
        kernel=source.name,
        place=f"{source.file}:{source.line}",
        ops=tuple(sorted(ops)),
        lines=len(lines),
        reached=len(lines) - len(missing),
        excluded=len({item.line for item in source.statements if item.excluded} - {*lines}),
        gaps=tuple(_gaps(lines, missing)),
        masks=_masks(source, whole.masks),
        specialisations=len(by_launch),
        differences=tuple(_differences(source, whole, by_launch)),
        unlaunched=tuple(_unlaunched(source, constants.values())) if ops else (),
    )


def shortfalls(kernels: Sequence[KernelCoverage], policy: Policy, ops: Iterable[str], *, whole: bool) -> Iterator[str]:
    """Yield a sentence for each op, and each kernel that nothing launches, that is below the declared minimum.

    Args:
        whole: Whether every op was audited, so that a kernel that none of them launched is launched by nothing.
    """
    for op in ops:
        least = limits_for(CoverageLimits, COVERAGE, policy, op, "")
        own = [item for item in kernels if op in item.ops]
        lines = sum(item.reached for item in own), sum(item.lines for item in own)
        masks = sum(len(item.masks) - len(item.never_partial) for item in own), sum(len(item.masks) for item in own)
        for (had, of), share, key, what in (
            (lines, least.lines, "lines", "of the lines of its kernels were reached"),
            (masks, least.masks, "masks", "of the masks of its kernels were partly on"),
        ):
            if of and had / of < share:
                yield (
                    f"{op}: {had} of {of} ({had / of:.1%}) {what}, and {COVERAGE}.{key} asks for {share:.1%}; "
                    f"the table of kernels says what to add"
                )
    idle = [f"{item.kernel} ({item.place})" for item in kernels if not item.ops and item.lines]
    if idle and whole and limits_for(CoverageLimits, COVERAGE, policy, "", "").lines:
        yield (
            f"no case launches {', '.join(idle)}, and defaults.{COVERAGE} asks for lines; register the op that does, "
            f"delete them, or mark them `{PRAGMA}`"
        )


@dataclass(slots=True)
class _Reached:
    """What ran of one function: places of statements, and the states of its masks by place."""

    statements: set[int] = field(default_factory=set)
    masks: dict[str, int] = field(default_factory=dict)

    def add(self, statements: Iterable[int], masks: Mapping[str, int]) -> None:
        self.statements.update(statements)
        for place, states in masks.items():
            self.masks[place] = self.masks.get(place, 0) | states


def _specialisation(ran: Ran, source: Source) -> str:
    constants = ", ".join(f"{name}={value}" for name, value in sorted(ran.constants.items()))
    if ran.kernel == source.name:
        return constants or "no constants"
    return f"{ran.kernel.rpartition('.')[2]}({constants})"


def _lines(source: Source) -> tuple[int, ...]:
    """Return the lines with a statement that counts."""
    return tuple(sorted({item.line for item in source.statements if not item.excluded}))


def _missing(source: Source, reached: Collection[int]) -> Iterator[tuple[int, str]]:
    """Yield each line of which a statement did not run, with the reason of the first such statement."""
    told: set[int] = set()
    for place, item in enumerate(source.statements):
        if place not in reached and not item.excluded and item.line not in told:
            told.add(item.line)
            yield item.line, item.unless


def _gaps(lines: Sequence[int], missing: Mapping[int, str]) -> Iterator[Gap]:
    """Yield the runs of missing lines, between which there is none that was reached."""
    for absent, run in groupby(lines, key=lambda line: line in missing):
        if absent:
            together = [*run]
            yield Gap(first=together[0], last=together[-1], unless=missing[together[0]])


def _masks(source: Source, states: Mapping[str, int]) -> tuple[MaskSeen, ...]:
    seen = [
        MaskSeen(
            line=item.line, access=item.access, mask=item.text, block=bool(had & BLOCK),
            seen=tuple(name for bit, name in STATES.items() if had & bit),
        )
        for place, item in enumerate(source.masks)
        if (had := states.get(str(place), 0)) and not item.excluded
    ]  # fmt: skip
    return tuple(sorted(seen, key=lambda item: item.line))


def _differences(source: Source, whole: _Reached, parts: Mapping[str, _Reached]) -> Iterator[Difference]:
    """Yield what the specialisations leave out of what all of them together reach, those that leave out the same once.

    Of masks only those count that could have been partly on: a line that is not reached is told as that, and a mask
    of one lane never is.
    """
    lines = _lines(source)
    never = dict(_missing(source, whole.statements))
    found: dict[tuple[tuple[str, ...], tuple[int, ...]], list[str]] = defaultdict(list)
    for name, part in sorted(parts.items()):
        absent = {line: "" for line, _ in _missing(source, part.statements) if line not in never}
        reachable = [line for line in lines if line not in never]
        unlike = {
            source.masks[int(place)].line
            for place, states in part.masks.items()
            if whole.masks[place] & PARTLY and states & BLOCK and not states & PARTLY
        }
        found[tuple(map(str, _gaps(reachable, absent))), tuple(sorted(unlike))].append(name)
    for (missing, never_partial), names in found.items():
        if missing or never_partial:
            yield Difference(specialisations=tuple(names), missing=missing, never_partial=never_partial)


def _unlaunched(source: Source, launched: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield the configurations whose constants no launch had; those that differ in warps and stages only are one."""
    had = [*launched]
    for config in source.configs:
        if config and not any(config.items() <= constants.items() for constants in had):
            yield ", ".join(f"{name}={value}" for name, value in sorted(config.items()))
