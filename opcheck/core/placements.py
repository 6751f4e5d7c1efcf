"""Which memory layouts an op's tensors get: each applicable one for each tensor, and few cases."""

from __future__ import annotations

from collections.abc import Iterator

from opcheck.core.case import LEADING, Dims
from opcheck.core.facts import Facts
from opcheck.core.layouts import FAR, GRADIENT, LAYOUTS, Layout, layout, layout_text
from opcheck.core.outside import STRIDED
from opcheck.core.policy import Contract, Level
from opcheck.core.shapes import odd

QUICK = (("transposed", "expanded"), ("padded", "narrowed"))  # of the inputs, of the upstream gradients
_ORDINARY = tuple(item for item in LAYOUTS if not item.alone)
BATCHES = (2, 3)  # leading dimensions that give a matrix the four that channels last needs


def placed(contract: Contract, facts: Facts, level: Level) -> tuple[str, ...]:
    """Return texts of a case's layout, the contiguous one first.

    Beyond the quick level each tensor has each layout that fits it in one of them, and no two tensors go through the
    layouts in step: a kernel that takes one tensor's strides for another's must not be lucky.
    """
    tensors = _fitting(contract, facts)
    if level == "quick":
        return tuple(dict.fromkeys(("", *(_pair(tensors, given, upstream) for given, upstream in QUICK))))
    rounds = max((len(fitting) for fitting in tensors.values()), default=0)
    texts = (
        layout_text({name: fitting[(turn + at) % len(fitting)] for at, (name, fitting) in enumerate(tensors.items())})
        for turn in range(rounds)
    )
    return tuple(dict.fromkeys(("", *texts)))


def channels_last(contract: Contract, facts: Facts) -> tuple[Dims, str] | None:
    """Return a shape and layout in which what has any leading dimensions is channels last; None where nothing fits."""
    if LEADING not in contract.dims:
        return None
    names = [
        name
        for name, item in facts.inputs.items()
        if LEADING in item.dims and item.rank == 2 and name not in contract.contiguous
    ]
    if not names:
        return None
    leading = {f"{LEADING}{at}": size for at, size in enumerate(BATCHES)}
    upstream = [f"{GRADIENT}{name}" for name, item in _differentiable(facts) if item == 2]
    return Dims({**leading, **odd(contract)}), layout_text(dict.fromkeys((*names, *upstream), "channels_last"))


def far(contract: Contract, facts: Facts) -> str:
    """Return the layout in which offsets into every tensor that can be so pass 2^31 elements; empty where none can."""
    wanted = layout(FAR)
    names = [
        name for name, item in facts.inputs.items() if name not in contract.contiguous and _fits(wanted, item.rank)
    ]
    if not facts.inputs.keys() & facts.outputs.keys():
        names += [f"{GRADIENT}{name}" for name, rank in _differentiable(facts) if _fits(wanted, rank)]
    return layout_text(dict.fromkeys(names, FAR))


def strided(contract: Contract, facts: Facts, level: Level) -> Iterator[str]:
    """Yield layouts under which an input that is declared contiguous is not: the op must raise."""
    for name in contract.contiguous:
        item = facts.inputs.get(name)
        if item is None or not item.rank:
            continue
        yield layout_text({name: "transposed" if item.rank > 1 else "expanded"})
        if level != "quick" and item.rank > 1:
            yield layout_text({name: "padded"})


def _pair(tensors: dict[str, tuple[str, ...]], given: str, upstream: str) -> str:
    wanted = {name: upstream if name.startswith(GRADIENT) else given for name in tensors}
    return layout_text({name: layout for name, layout in wanted.items() if layout in tensors[name]})


def _fitting(contract: Contract, facts: Facts) -> dict[str, tuple[str, ...]]:
    """Return for each tensor that can be laid out the layouts that fit it."""
    written = facts.inputs.keys() & facts.outputs.keys()
    found: dict[str, tuple[str, ...]] = {}
    for name, item in facts.inputs.items():
        layouts = [layout.name for layout in _ORDINARY if layout.for_inputs and _fits(layout, item.rank)]
        if name in contract.contiguous:
            layouts = [layout for layout in layouts if layout not in STRIDED]
        # Two elements at one address cannot both be written; offsets, and what the author made by other means, may be
        # legal only as they were drawn.
        if name in written or item.kind in ("offsets", "other"):
            layouts = [layout for layout in layouts if layout != "expanded"]
        found[name] = tuple(layouts)
    if not written:
        for name, rank in _differentiable(facts):
            fitting = (layout.name for layout in _ORDINARY if layout.for_gradients and _fits(layout, rank))
            found[f"{GRADIENT}{name}"] = tuple(fitting)
    return {name: layouts for name, layouts in found.items() if layouts}


def _differentiable(facts: Facts) -> list[tuple[str, int]]:
    return [(name, item.rank) for name, item in facts.outputs.items() if item.differentiable]


def _fits(layout: Layout, rank: int) -> bool:
    return rank >= layout.rank and rank > 0
