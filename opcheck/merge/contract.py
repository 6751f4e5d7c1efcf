"""What a contract promised and promises no longer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opcheck.core.decision import Point, Rule
from opcheck.core.factors import families
from opcheck.core.facts import Facts
from opcheck.core.policy import DTYPES, Contract, Policy
from opcheck.declared.limits import FIVE_STAGE
from opcheck.merge.reasons import Reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """One promise that head does not make any more.

    Attributes:
        key: The contract's key.
        sentence: What is, and what base has.
        reason: The reason that stands beside it, where its key takes one.
    """

    key: str
    sentence: str
    reason: str = ""
    rule: Rule = "contract-narrowed"


def points(base: Policy, head: Policy, reasons: Reasons) -> Iterator[Point]:
    """Yield what base's ops promised and head's do not."""
    for name, before in base.ops.items():
        after = head.ops.get(name)
        if after is None:
            yield reasons.point("op-removed", name, "op", "base declares it and head does not")
            continue
        for item in narrowed(before, after):
            yield reasons.point(item.rule, name, item.key, item.sentence, own=item.reason)


def narrowed(base: Contract, head: Contract) -> Iterator[Narrowed]:
    """Yield each promise of an op that base makes and head does not."""
    yield from _lost(base, head)
    yield from _ranges(base, head)
    yield from _exempted(base, head)
    yield from _weaker(base, head)
    yield from _existing(base, head)


def _lost(base: Contract, head: Contract) -> Iterator[Narrowed]:
    """Yield the items of lists that head lacks: each is a family of cases that no audit runs any more."""
    for key in ("dtypes", "mixed", "dims", "variants", "production", "values", "reduces", "empty"):
        kept = getattr(head, key)
        if gone := [item for item in getattr(base, key) if item not in kept]:
            yield _gone(key, gone)
    for name, sizes in base.tiles.items():
        if gone := [size for size in sizes if size not in head.tiles.get(name, ())]:
            yield _gone("tiles", gone, f"of {name}")
    kept = {item.dtype for item in head.unsupported} | set(head.dtypes)
    if gone := [item.dtype for item in base.unsupported if item.dtype not in kept]:
        yield _gone("unsupported", gone)


def _gone(key: str, items: Iterable[Any], of: str = "") -> Narrowed:
    told = ", ".join(map(shown, items))
    return Narrowed(key=key, sentence=f"{key}{of and ' '}{of} lacks {told}, which base has", rule="family-removed")


def _ranges(base: Contract, head: Contract) -> Iterator[Narrowed]:
    """Yield the sizes that were legal and are not."""
    for name in dict.fromkeys((*head.smallest, *base.smallest)):
        new, old = head.smallest.get(name, 1), base.smallest.get(name, 1)
        if new > old:
            yield Narrowed(key="smallest", sentence=f"smallest.{name} is {new}, {old} in base")
    for name, size in head.largest.items():
        if size < base.largest.get(name, size + 1):
            told = base.largest.get(name, "unlimited")
            yield Narrowed(key="largest", sentence=f"largest.{name} is {size}, {told} in base")
    for name, step in head.multiple.items():
        old = base.multiple.get(name, 1)
        if old % step:
            yield Narrowed(key="multiple", sentence=f"multiple.{name} is {step}, {old} in base")
    for name, sizes in head.sizes.items():
        before = base.sizes.get(name)
        if before is None or set(before) - set(sizes):
            told = "any size" if before is None else shown(before)
            yield Narrowed(key="sizes", sentence=f"sizes.{name} allows {shown(sizes)}, {told} in base")


def _exempted(base: Contract, head: Contract) -> Iterator[Narrowed]:
    """Yield the exemptions that are new; each has its reason beside it, which is as new as it is."""
    for key in ("contiguous", "extent", "no_grad"):
        before: Mapping[str, str] = getattr(base, key)
        for name, reason in getattr(head, key).items():
            if name not in before:
                yield Narrowed(key=key, sentence=f"{key}.{name} is new", reason=reason)
    if head.nonfinite_undefined and not base.nonfinite_undefined:
        sentence = "nonfinite is undefined, and propagates in base" + _untried(base, head)
        yield Narrowed(key="nonfinite", sentence=sentence, reason=head.nonfinite_undefined)


def _weaker(base: Contract, head: Contract) -> Iterator[Narrowed]:
    """Yield the words of a contract that ask less of the op, or something else."""
    for way in ("forward", "backward"):
        if getattr(base, f"deterministic_{way}") and not getattr(head, f"deterministic_{way}"):
            yield Narrowed(key="deterministic", sentence=f"deterministic.{way} is false, true in base")
    if head.random and not base.random:
        yield Narrowed(key="random", sentence="random is true, false in base" + _untried(base, head))
    if head.kind != base.kind:
        sentence = f"kind is {head.kind}, {base.kind} in base: other laws hold" + _untried(base, head)
        yield Narrowed(key="kind", sentence=sentence)
    if head.overflow != base.overflow:
        yield Narrowed(key="overflow", sentence=f"overflow is {head.overflow}, {base.overflow} in base")
    new, old = head.accumulator or "float32", base.accumulator or "float32"
    if DTYPES.index(new) > DTYPES.index(old):
        yield Narrowed(key="accumulator", sentence=f"accumulator is {new}, {old} in base: larger errors are excused")


def _untried(base: Contract, head: Contract) -> str:
    """Say which families of values no audit tries any more."""
    kept = families(head, Facts(), "full")
    gone = [name for name in families(base, Facts(), "full") if name not in kept]
    return f"; no longer tried: {', '.join(gone)}" if gone else ""


def _existing(base: Contract, head: Contract) -> Iterator[Narrowed]:
    """Yield tolerances of the op's own that are new or wider: they carry a target that the laws alone would not."""
    for dtype, new in head.existing.items():
        old = base.existing.get(dtype)
        if old is not None and new.atol <= old.atol and new.rtol <= old.rtol:
            continue
        before = f"atol {old.atol:g}, rtol {old.rtol:g} in base" if old else "none in base"
        sentence = f"numerics.existing.{dtype} is atol {new.atol:g}, rtol {new.rtol:g}, {before}"
        # The words "five-stage" name a tolerance; they are no reason.
        fresh = "" if new == FIVE_STAGE.get(dtype) or (old and new.reason == old.reason) else new.reason
        yield Narrowed(key="numerics", sentence=sentence, reason=fresh, rule="limit-loosened")


def shown(value: Any) -> str:
    """Return a value of a contract as TOML has it."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {shown(item)}" for key, item in value.items()) + " }"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
