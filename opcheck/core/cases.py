"""From a contract to the list of cases: pure, printable, and the same every time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from opcheck.core import factors
from opcheck.core.case import Case, Dims
from opcheck.core.cost import BUDGET, REPRESENTATIVE, case_cost
from opcheck.core.covering import Space, cover, shares, space
from opcheck.core.factors import Point
from opcheck.core.facts import Facts
from opcheck.core.families import FAMILIES
from opcheck.core.placements import far
from opcheck.core.policy import LEVELS, Contract, Level
from opcheck.core.report import Coverage
from opcheck.core.sampling import sampled_cost, sampled_shapes, sampled_variant
from opcheck.core.shapes import INTERPRETED_ELEMENTS, odd, reduced, runnable
from opcheck.core.sweep import shapes_of
from opcheck.core.tiles import observed_tiles

HIDING = frozenset({"zeros", *(item.name for item in FAMILIES if not item.finite)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A case, and whether it is the one of its dtype on which the costly checks run."""

    case: Case
    representative: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an audit of one op will run, and in words what it will not.

    Attributes:
        space: What the cases were to combine by pairs; None where they were given.
        cost: Estimate of what they take, in seconds of one core.
    """

    cases: tuple[Planned, ...]
    not_covered: tuple[str, ...] = ()
    space: Space | None = field(default=None, compare=False)
    cost: float = 0.0


NOTHING_KNOWN = Facts()


def plan_cases(
    contract: Contract,
    *,
    level: Level,
    backend: str,
    seed: int = 0,
    refused: Mapping[str, str] | None = None,
    facts: Facts = NOTHING_KNOWN,
    budget: float | None = None,
) -> Plan:
    """Return the cases of an op at a level; the same arguments always give the same plan.

    What has to be tried is planned first, whatever it costs: every option of every factor in the surroundings of the
    representative case, families and variants in every dtype, the rest in one dtype after the other. Then pairs of
    options are covered until the level's budget is spent. A level has all the cases of the levels below it.

    Args:
        refused: Element types for which this backend cannot give a verdict, with the reason.
        facts: What a run of the op showed about it.
        budget: Seconds of one core that the op's cases may take before no more pairs are covered; the level's unless
            given.
    """
    refused = refused or {}
    dtypes = factors.dtypes(contract, refused)
    missing = [*_refused(contract, refused)]
    if contract.nonfinite_undefined:
        missing.append(f"NaN and Inf inputs: outside the contract ({contract.nonfinite_undefined})")
    elif contract.random:
        missing.append("NaN and Inf inputs: the op is declared random, and may drop them")
    if not dtypes:
        return Plan(cases=(), not_covered=tuple(missing))
    cost = case_cost(contract, facts.launches, backend)
    points: dict[Point, bool] = {}
    sampled: dict[Point, float] = {}
    spent, whole = 0.0, None
    too_large: list[str] = []
    for name in LEVELS[: LEVELS.index(level) + 1]:
        step: Level = name  # type: ignore[assignment]
        too_large = []
        tiles = observed_tiles(facts.launches, contract)
        wanted = tuple(shapes_of(contract, step, tiles))
        part = sampled_shapes(contract, facts, step, wanted, backend)
        sampled |= {Point(dtype=dtypes[0], dims=dims, variant=sampled_variant()): sampled_cost(dims) for dims in part}
        shapes = tuple(runnable(wanted, backend, too_large, [point.dims for point in sampled], cost))
        alone = factors.configs(contract, facts, step, dtypes)
        required = (*_mandatory(contract, facts, step, dtypes, shapes), *((point, False) for point in alone))
        for point, chosen in required:
            before = points.get(point)
            points[point] = chosen or bool(before)
            spent += cost(point.dims) * ((before is None) + REPRESENTATIVE * (chosen and not before))
        whole = _space(contract, facts, step, dtypes, shapes)
        room = BUDGET[step] if budget is None else budget
        more = cover(whole, points, cost, budget=room - spent, seed=f"{contract.name}|{step}|{seed}")
        points |= dict.fromkeys(more, False)
        spent += sum(cost(point.dims) for point in more)
    points |= dict.fromkeys(sampled, False)
    cases = (
        Planned(case=_case(contract, point, seed, backend), representative=chosen) for point, chosen in points.items()
    )
    missing += _configs_left(facts, level)
    if level != "quick" and facts.no_far and far(contract, facts):
        missing.append(f"offsets of more than 2^31 elements: {facts.no_far}")
    return Plan(cases=tuple(cases), not_covered=(*too_large, *missing), space=whole, cost=spent + sum(sampled.values()))


def coverage(plan: Plan, cases: Iterable[Case]) -> Coverage:
    """Return what a plan's cases combined, of those that ran."""
    pairs = {} if plan.space is None else shares(plan.space, map(point_of, cases))
    return Coverage(pairs=pairs, estimated_seconds=round(plan.cost, 1))


def point_of(case: Case) -> Point:
    """Return what a case combines."""
    return Point(
        dtype=case.dtype, dims=case.dims, values=case.values, layout=case.layout, variant=case.variant,
        grads=case.grads,
    )  # fmt: skip


def _mandatory(
    contract: Contract, facts: Facts, level: Level, dtypes: tuple[str, ...], shapes: tuple[Dims, ...]
) -> Iterator[tuple[Point, bool]]:
    plain = [dtype for dtype in dtypes if "=" not in dtype]
    homes = [Point(dtype=dtype, dims=odd(contract)) for dtype in plain]
    yield from ((home, level != "quick" or not at) for at, home in enumerate(homes))
    for dtype in dtypes[len(plain) :]:
        yield Point(dtype=dtype, dims=odd(contract)), False
        if level != "quick":
            yield Point(dtype=dtype, dims=odd(contract), values="large_mean"), False
    everywhere: list[Mapping[str, object]] = [{"dims": dims} for dims in shapes if _large(dims)]
    everywhere += [{"values": name} for name in factors.families(contract, facts, level)]
    in_turn: list[Mapping[str, object]] = [{"dims": dims} for dims in shapes if not _large(dims)]
    in_turn += [{"layout": text} for text in factors.layouts(contract, facts, level)]
    in_turn += [{"grads": text} for text in factors.grads(contract, facts, level)]
    (in_turn if level == "quick" else everywhere).extend(
        {"variant": text} for text in factors.variants(contract, facts, level)
    )
    near = [_changed(home, change) for home in homes for change in everywhere]
    near += [_changed(homes[at % len(homes)], change) for at, change in enumerate(in_turn if homes else ())]
    yield from ((point, False) for point in near if factors.possible(contract, facts, point))
    yield from ((point, False) for point in factors.alone(contract, facts, level, dtypes))


def _space(contract: Contract, facts: Facts, level: Level, dtypes: tuple[str, ...], shapes: tuple[Dims, ...]) -> Space:
    return space(
        {
            "dtype": dtypes,
            "shape": (odd(contract), *(dims for dims in shapes if not (_large(dims) or _degenerate(contract, dims)))),
            "values": factors.families(contract, facts, level),
            "layout": factors.layouts(contract, facts, level),
            "variant": factors.variants(contract, facts, level),
            "grads": factors.grads(contract, facts, level),
        },
        lambda point: factors.possible(contract, facts, point),
        hiding=HIDING,
    )


def _large(dims: Dims) -> bool:
    """Say whether a shape is only for GPUs: it is tried in every dtype, and not combined with anything else."""
    return math.prod(dims.values()) > INTERPRETED_ELEMENTS


def _degenerate(contract: Contract, dims: Dims) -> bool:
    """Say whether a normalization has one element to normalize over: it then forgets its input, and errors cancel."""
    return contract.kind == "normalization" and all(dims[name] == 1 for name in reduced(contract))


def _changed(point: Point, change: Mapping[str, object]) -> Point:
    return replace(point, **change)  # type: ignore[arg-type]


def _refused(contract: Contract, refused: Mapping[str, str]) -> list[str]:
    mixed = [",".join(f"{key}={value}" for key, value in table.items()) for table in contract.mixed]
    plain = [f"{dtype}: {refused[dtype]}" for dtype in contract.dtypes if dtype in refused]
    return plain + [f"mixed {text}: {why}" for text in mixed for dtype, why in refused.items() if f"={dtype}" in text]


def _configs_left(facts: Facts, level: Level) -> Iterator[str]:
    for kernel, offered in facts.configs.items():
        tried = max(min(offered, factors.MOST_CONFIGS[level]), 1)
        if offered > tried:
            yield f"{offered - tried} of {offered} configurations of {kernel}, each alone"


def _case(contract: Contract, point: Point, seed: int, backend: str) -> Case:
    return Case(
        op=contract.name, dtype=point.dtype, dims=point.dims, values=point.values, layout=point.layout,
        variant=point.variant, grads=point.grads, seed=seed, backend=backend,
    )  # fmt: skip
