"""`registry.toml` as values: what each op promises and how closely it is held to it."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeVar, get_args

from opcheck.core.verdict import Verdict

Kind = Literal[
    "elementwise", "reduction", "normalization", "contraction", "attention", "gather", "scan", "quantize"
]  # fmt: skip
Overflow = Literal["saturate", "ieee", "nan"]
Level = Literal["quick", "standard", "full"]
KINDS: tuple[str, ...] = get_args(Kind)
LEVELS: tuple[str, ...] = get_args(Level)
DTYPES: tuple[str, ...] = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
WIDE: frozenset[str] = frozenset({"float32", "float64"})

_Limits = TypeVar("_Limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A dtype that the op refuses, and why."""

    dtype: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """A tolerance that the op already had elsewhere: `|target - golden| <= atol + rtol |golden|`."""

    atol: float
    rtol: float
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Limits of one check that differ from those above, for one dtype or (`dtype=""`) for all."""

    check: str
    dtype: str
    values: Mapping[str, Any]
    reason: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What one op promises, from its `[op."ns::name"]` table; see `docs/registry.md` for every key."""

    name: str
    kind: Kind
    dtypes: tuple[str, ...]
    dims: tuple[str, ...]
    formula: str = ""
    mixed: tuple[Mapping[str, str], ...] = ()
    accumulator: str = ""
    intermediates: tuple[str, ...] = ()
    reduces: tuple[str, ...] = ()
    smallest: Mapping[str, int] = field(default_factory=dict)
    largest: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    multiple: Mapping[str, int] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    tiles: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    production: tuple[Mapping[str, int], ...] = ()
    variants: tuple[Mapping[str, Any], ...] = ()
    values: tuple[str, ...] = ()
    contiguous: Mapping[str, str] = field(default_factory=dict)
    extent: Mapping[str, str] = field(default_factory=dict)
    no_grad: Mapping[str, str] = field(default_factory=dict)
    nonfinite_undefined: str = ""  # the reason why NaN and Inf inputs are outside the contract; empty: they propagate
    deterministic_forward: bool = True
    deterministic_backward: bool = True
    random: bool = False
    overflow: Overflow = "ieee"
    unsupported: tuple[Unsupported, ...] = ()
    existing: Mapping[str, Existing] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """A known failure that may ship until a date."""

    op: str
    check: str
    reason: str
    until: datetime.date
    where: Mapping[str, str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.op, self.check, self.reason, self.until, tuple(self.where.items())))

    def concerns(self, op: str) -> bool:
        """Say whether the waiver may be about a finding of an op."""
        return fnmatchcase(op, self.op)

    def covers(self, op: str, check: str, facts: Mapping[str, str]) -> bool:
        """Say whether the waiver is about this finding; `op` and `check` may be globs."""
        named = self.concerns(op) and fnmatchcase(check, self.check)
        return named and all(facts.get(key) == value for key, value in self.where.items())

    def __str__(self) -> str:
        where = "".join(f", {key} {value}" for key, value in self.where.items())
        return f"waiver for {self.check} of {self.op}{where} until {self.until}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A promise that was taken back knowingly: what of which op, and why; `op` may be a glob."""

    op: str
    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    """Which verdicts may ship, on which backends evidence is needed, how hard it looked, and how old it may be."""

    accept: frozenset[Verdict] = frozenset({Verdict.PASS, Verdict.PASS_WITH_LIMITATIONS})
    backends: tuple[str, ...] = ("cpu",)
    level: Level = "standard"
    max_age: datetime.timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The whole of `registry.toml`."""

    path: str = ""
    modules: tuple[str, ...] = ()
    defaults: tuple[Override, ...] = ()
    gate: GatePolicy = field(default_factory=GatePolicy)
    ops: Mapping[str, Contract] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ByWidth:
    """A number that differs between wide (float32, float64) and narrow element types."""

    narrow: float
    wide: float

    def of(self, dtype: str) -> float:
        """Return the number for an element type."""
        return self.wide if dtype in WIDE else self.narrow


def limits_for(limits: type[_Limits], check: str, policy: Policy, op: str, dtype: str) -> _Limits:
    """Return a check's limits for one op and dtype: its defaults, then the file's, then the op's, then the dtype's."""
    contract = policy.ops.get(op)
    values: dict[str, Any] = {}
    for layers in (policy.defaults, contract.overrides if contract else ()):
        for wanted in ("", dtype):
            for layer in layers:
                if layer.check == check and layer.dtype == wanted:
                    values.update(layer.values)
    return limits(**values)


def limit(
    default: Any,
    doc: str,
    *,
    loose: Literal["higher", "lower", "neither"] = "higher",
    zero: bool = False,
    most: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare one limit of a check: a dataclass field with its sentence and the direction that is looser.

    `zero` says that 0 makes sense; where it is the default it does anyway. `most` is the largest that makes sense,
    `choices` are the words of a list.
    """
    metadata = {"doc": doc, "loose": loose, "zero": zero, "most": most, "choices": choices}
    return field(default=default, metadata=metadata)


def looser(new: Any, old: Any, loose: str) -> bool:
    """Say whether a limit is looser than it was, by the direction that its declaration gives."""
    return bool(new > old if loose == "higher" else new < old if loose == "lower" else False)


def contract_text(contract: Contract) -> dict[str, str]:
    """Return what a contract says beyond its defaults, in words by field; its limits are another matter."""
    fields = [item.name for item in dataclasses.fields(contract) if item.name not in ("name", "overrides")]
    return {name: _text(value) for name in fields if (value := getattr(contract, name)) not in ((), {}, "")}


def _text(value: Any) -> str:
    if dataclasses.is_dataclass(value):
        value = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_text(item)}" for key, item in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(_text(item) for item in value) if isinstance(value, tuple) else str(value)


def plain(value: bool | float | tuple[str, ...]) -> str:
    """Return a limit in words: a number, a list of names, yes or no as TOML has them."""
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
