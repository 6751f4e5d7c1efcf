"""Part of the printed report: what the cases reached of each kernel, and what to add for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tabulate import tabulate

from opcheck.core.kernel_coverage import PRAGMA, STATES, KernelCoverage, MaskSeen

HEADERS = ("Kernel", "Lines", "Missing lines", "Partial masks", "Never partial")
MOST_ADVICE = 12  # sentences printed, unless verbose
MOST_RANGES = 6  # in a field of the table


def table(kernels: Sequence[KernelCoverage], *, verbose: bool) -> str:
    """Return the table of the kernels, with a sentence for each thing that no case reaches."""
    rows = [_row(item) for item in kernels if item.lines or item.excluded]
    if not rows:
        return "coverage: no Triton kernel was launched, and none stands in the registered modules"
    lines = ["coverage of the kernels, by every case of the ops audited"]
    lines += [f"  {line}" for line in tabulate(rows, headers=HEADERS, disable_numparse=True).splitlines()]
    advice = [sentence for item in kernels for sentence in _advice(item)]
    shown = advice if verbose else advice[:MOST_ADVICE]
    lines += [f"  {sentence}" for sentence in shown]
    if len(shown) < len(advice):
        lines.append(f"  {len(advice) - len(shown)} more (-v lists them)")
    if verbose:
        lines += [f"  {sentence}" for item in kernels for sentence in (*_never(item), *_differences(item))]
    return "\n".join(lines)


def _row(item: KernelCoverage) -> tuple[str, ...]:
    masks = len(item.masks)
    return (
        f"{item.kernel.rpartition('.')[2]}  {item.place}",
        f"{item.reached}/{item.lines}" + (f" ({item.excluded} excluded)" if item.excluded else ""),
        _some(map(str, item.gaps)),
        f"{masks - len(item.never_partial)}/{masks}" if masks else "-",
        _some(dict.fromkeys(str(mask.line) for mask in item.never_partial)),
    )


def _some(words: Iterable[str]) -> str:
    every = list(words)
    more = [f"{len(every) - MOST_RANGES} more"] if len(every) > MOST_RANGES else []
    return ", ".join([*every[:MOST_RANGES], *more])


def _advice(item: KernelCoverage) -> Iterator[str]:
    """Yield what the author must do about each thing that is missing."""
    file = item.place.rpartition(":")[0]
    if not item.ops:
        if item.lines:
            yield (
                f"{item.place}: no case launches {item.kernel}: register the op that does, delete it, or mark its def "
                f"`{PRAGMA}`"
            )
        return
    for gap in item.gaps:
        why = f": {gap.unless}" if gap.unless else ""
        yield (
            f"{file}:{gap} never ran{why}; declare a size, a variant or a dtype that gets there, or mark it `{PRAGMA}`"
        )
    for mask in item.never_partial:
        yield f"{file}:{mask.line}: {_states(mask)}"
    for config in item.unlaunched:
        yield f"{item.place}: no case launches the configuration {config}: declare a size that it is not pruned for"


def _states(mask: MaskSeen) -> str:
    what = f"the mask `{mask.mask}` of the {mask.access} was only ever {' or '.join(mask.seen)}"
    if mask.block:
        return f"{what}; add a size that fills a block in part"
    wanted = "off" if "all on" in mask.seen else "on"
    return f"{what.replace('all ', '')}, and it has one lane; add a size or variant that turns it {wanted}"


def _never(item: KernelCoverage) -> Iterator[str]:
    """Yield the states, beside partly on, that a mask never had; not every mask can have them all."""
    file = item.place.rpartition(":")[0]
    for mask in item.masks:
        never = [state for state in STATES.values() if state not in mask.seen]
        if mask.covered and mask.block and never:
            what = f"the mask `{mask.mask}` of the {mask.access}"
            yield f"{file}:{mask.line}: {what} was {' and '.join(mask.seen)}, never {' or '.join(never)}"


def _differences(item: KernelCoverage) -> Iterator[str]:
    for part in item.differences:
        names = " | ".join(part.specialisations[:MOST_RANGES])
        more = len(part.specialisations) - MOST_RANGES
        lacks = [f"never runs {', '.join(part.missing)}"] if part.missing else []
        lacks += [f"never partial at {', '.join(map(str, part.never_partial))}"] if part.never_partial else []
        yield (
            f"{item.place}: {len(part.specialisations)} of {item.specialisations} specialisations: "
            f"{'; '.join(lacks)}: {names}" + (f" and {more} more" if more > 0 else "")
        )
