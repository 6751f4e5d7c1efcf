"""What a case may vary, factor by factor; each function returns the texts of a case's field, the default first.

`opcheck.core.cases` plans every option of every factor once in the representative case's surroundings, and combines
the options of different factors by pairs. A higher level returns all that a lower one returns, in the same order, and
may add to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from opcheck.core.case import LEADING, Dims
from opcheck.core.facts import Facts
from opcheck.core.families import FLOAT, families_for
from opcheck.core.layouts import layouts_of, revalues_gradient
from opcheck.core.placements import channels_last, far, placed, strided
from opcheck.core.policy import Contract, Level
from opcheck.core.shapes import named, odd
from opcheck.core.sweep import several_tiles
from opcheck.core.tiles import tiles_of_config
from opcheck.core.variants import CONFIG, variant_text

SATURATING = {"normalization": ("extreme_logits",), "attention": ("extreme_logits", "large_mean")}
MOST_CONFIGS = {"quick": 0, "standard": 16, "full": 64}  # configurations of autotuned kernels that are audited alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One combination: what a `Case` says beyond op, seed and backend."""

    dtype: str
    dims: Dims = field(default_factory=Dims)
    values: str = "normal"
    layout: str = ""
    variant: str = ""
    grads: str = ""


def dtypes(contract: Contract, refused: Mapping[str, str]) -> tuple[str, ...]:
    """Return the element types, mixed ones last, without those for which the backend can give no verdict."""
    mixed = (",".join(f"{key}={value}" for key, value in table.items()) for table in contract.mixed)
    plain = (dtype for dtype in contract.dtypes if dtype not in refused)
    return (*plain, *(text for text in mixed if not any(f"={dtype}" in text for dtype in refused)))


def families(contract: Contract, facts: Facts, level: Level) -> tuple[str, ...]:
    """Return the families of values of the op's kind and contract that fill one of the kinds of input it draws."""
    draws = {item.kind for item in facts.inputs.values()} or FLOAT
    # What becomes of a NaN or an Inf that is dropped, nobody promises: 0, or what 0 times it is.
    finite_only = bool(contract.nonfinite_undefined) or contract.random
    found = families_for(contract.kind, finite_only=finite_only, level=level, draws=draws, beside=contract.values)
    return tuple(item.name for item in found)


def layouts(contract: Contract, facts: Facts, level: Level) -> tuple[str, ...]:
    """Return the layouts of inputs and upstream gradients, as they stand in a case's id."""
    return placed(contract, facts, level)


def variants(contract: Contract, facts: Facts, level: Level) -> tuple[str, ...]:
    """Return the argument values of the contract."""
    return ("", *(variant_text(arguments) for arguments in contract.variants))


def grads(contract: Contract, facts: Facts, level: Level) -> tuple[str, ...]:
    """Return which inputs require gradients and which outputs are used, as it stands in a case's id.

    Each of several outputs is used alone: the others then have no upstream gradient. Which inputs require one is what
    the check `autograd` goes through, without cases of its own.
    """
    live = [name for name, item in facts.outputs.items() if item.differentiable and name not in facts.inputs]
    return ("", *(f">{name}" for name in live)) if len(live) > 1 else ("",)


def alone(contract: Contract, facts: Facts, level: Level, dtypes: tuple[str, ...]) -> tuple[Point, ...]:
    """Return combinations that are planned as they are and never crossed with others.

    They are the legal empty dimensions, each in turn; channels last; offsets that pass 2^31 elements; and what is
    outside of the contract and must be refused: other empty dimensions, strided inputs that are declared contiguous,
    unsupported element types.
    """
    if not dtypes:
        return ()
    home = odd(contract)
    first = Point(dtype=dtypes[0], dims=home)
    names = named(contract)
    points = []
    for at, name in enumerate(contract.empty):
        dims = Dims({f"{LEADING}0": 0, **home}) if name == LEADING else home.with_size(name, 0)
        chosen = dtypes if level == "full" else (dtypes[at % len(dtypes)],)
        points += [Point(dtype=dtype, dims=dims) for dtype in chosen]
    if level != "quick" and (found := channels_last(contract, facts)) is not None:
        points.append(replace(first, dims=found[0], layout=found[1]))
    if level != "quick" and not facts.no_far and (text := far(contract, facts)):
        points.append(replace(first, layout=text))
    points += [replace(first, dims=home.with_size(name, 0)) for name in names if name not in contract.empty]
    points += [replace(first, layout=text) for text in strided(contract, facts, level)]
    points += [replace(first, dtype=item.dtype) for item in contract.unsupported]
    return tuple(points)


def configs(contract: Contract, facts: Facts, level: Level, dtypes: tuple[str, ...]) -> tuple[Point, ...]:
    """Return each configuration of the autotuned kernels alone, in one dtype, beyond the quick level.

    At the representative shape, and at one with several of the configuration's own tiles. All other cases launch the
    first configuration.
    """
    offered = min(max(facts.configs.values(), default=0), MOST_CONFIGS[level])
    if offered < 2 or not dtypes:
        return ()
    first = Point(dtype=dtypes[0], dims=odd(contract))
    points = []
    for config in range(1, offered):
        several = several_tiles(contract, tiles_of_config(facts.launches, contract, config))
        shapes = dict.fromkeys(dims for dims in (first.dims, several) if dims is not None)
        points += [replace(first, dims=dims, variant=variant_text({CONFIG: config})) for dims in shapes]
    return tuple(points)


def possible(contract: Contract, facts: Facts, point: Point) -> bool:
    """Say whether a combination makes sense: a constraint on several factors at once.

    The gradient of a softmax that is all but one-hot is next to nothing, and under a constant upstream gradient it is
    nothing: what is left is the rounding of whoever computes it. Logits that are products have a large mean's square.
    """
    saturated = point.values in SATURATING.get(contract.kind, ())
    return not (saturated and revalues_gradient(layouts_of(point.layout)))
