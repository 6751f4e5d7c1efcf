"""The keys of an `[op."ns::name"]` table, and what they must say together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from opcheck.core.families import FAMILIES
from opcheck.core.policy import DTYPES, KINDS, Contract, Existing, Overflow, Override, Unsupported
from opcheck.core.schema import Boolean, Integer, ListOf, MapOf, Number, OneOf, Problems, Record, Shape, Text, join
from opcheck.declared import dims
from opcheck.declared.names import ARGUMENT, ARGUMENT_REASONS, DIM, DIM_OR_LEADING, DTYPE, REASON

_SIZE = Integer(least=1)
_SIZES = MapOf(key=DIM, item=_SIZE)
_SIZE_LISTS = MapOf(key=DIM, item=ListOf(item=_SIZE, least=1, unique=True))
_SCALAR = OneOf(
    shapes=(Boolean(), Integer(least=-(2**63)), Number(), Text(pattern=r"[^,;\r\n]*", blank=True)),
    called="a boolean, a finite number or a string without , and ;",
)
_DETERMINISM = Record(
    optional={
        "forward": Boolean(doc="Equal bits in every run of the forward."),
        "backward": Boolean(doc="Equal bits in every run of the backward."),
    },
    called="a table with forward and backward",
)
_NONFINITE = OneOf(
    doc="What the op does with NaN and Inf in its inputs.",
    shapes=(Text(choices=("propagate",)), Record(required={"undefined": REASON})),
    called='"propagate", or with its reason { undefined = "..." }',
)

REQUIRED: dict[str, Shape] = {
    "kind": Text(doc="What the op is; chooses the laws that apply.", choices=KINDS),
    "dtypes": ListOf(doc="Element types that the op promises.", item=DTYPE, least=1, unique=True),
    "dims": ListOf(
        doc='Names of the dimensions that samples(case) asks for; "..." first stands for any leading ones.',
        item=DIM_OR_LEADING,
        least=1,
        unique=True,
    ),
}
OPTIONAL: dict[str, Shape] = {
    "formula": Text(doc="What the op computes, in signs."),
    "mixed": ListOf(
        doc="Combinations of element types by parameter.", item=MapOf(key=ARGUMENT, item=DTYPE, least=1), unique=True
    ),
    "accumulator": Text(doc="Element type of the sums.", choices=DTYPES),
    "intermediates": ListOf(doc="Element types between input and output.", item=DTYPE, unique=True),
    "reduces": ListOf(doc="Dimensions that the op sums or takes extrema over.", item=DIM_OR_LEADING, unique=True),
    "smallest": _SIZES.about("Smallest legal size by dimension."),
    "largest": _SIZES.about("Largest legal size by dimension."),
    "sizes": _SIZE_LISTS.about("The only legal sizes by dimension."),
    "multiple": _SIZES.about("What a size must be a multiple of, by dimension."),
    "empty": ListOf(doc="Dimensions that may be 0; any other empty one must raise.", item=DIM_OR_LEADING, unique=True),
    "tiles": _SIZE_LISTS.about("Known tile edges by dimension, beside those observed."),
    "production": ListOf(doc="Sizes that are used in earnest.", item=MapOf(key=DIM, item=_SIZE, least=1), unique=True),
    "variants": ListOf(
        doc="Combinations of argument values beside the sample's.",
        item=MapOf(key=ARGUMENT, item=_SCALAR, least=1),
        unique=True,
    ),
    "values": ListOf(
        doc="Families of values that the op is audited with beside those of its kind; docs/cases.md has them.",
        item=Text(choices=tuple(item.name for item in FAMILIES)),
        unique=True,
    ),
    "contiguous": ARGUMENT_REASONS.about("Parameters that must be contiguous, with why; a strided one must raise."),
    "extent": ARGUMENT_REASONS.about(
        "Parameters of which kernels may touch the whole buffer when they get a view into it, with why."
    ),
    "no_grad": ARGUMENT_REASONS.about("Parameters without a gradient, with why."),
    "nonfinite": _NONFINITE,
    "deterministic": OneOf(doc="Whether repeated runs give equal bits.", shapes=(Boolean(), _DETERMINISM)),
    "random": Boolean(doc="Whether the op draws random numbers."),
    "overflow": Text(doc="What float8 outputs do beyond the largest value.", choices=get_args(Overflow)),
    "unsupported": ListOf(
        doc="Element types that the op refuses, with why.",
        item=Record(required={"dtype": DTYPE, "reason": REASON}, build=Unsupported),
    ),
}


def build(
    name: str,
    table: Mapping[str, Any],
    overrides: tuple[Override, ...],
    existing: Mapping[str, Existing],
    path: str,
    problems: Problems,
) -> Contract | None:
    """Return the contract of a table that was read, or None where a required key is missing or wrong."""
    dims.check(table, path, problems)
    _check_dtypes(table, path, problems)
    if not table.keys() >= REQUIRED.keys():
        return None
    keys = {key: table[key] for key in (*REQUIRED, *OPTIONAL) if key in table}
    nonfinite = keys.pop("nonfinite", "propagate")
    deterministic = keys.pop("deterministic", {})
    if isinstance(deterministic, bool):
        deterministic = dict.fromkeys(("forward", "backward"), deterministic)
    return Contract(
        name=name,
        **keys,
        nonfinite_undefined="" if nonfinite == "propagate" else nonfinite.get("undefined", ""),
        deterministic_forward=deterministic.get("forward", True),
        deterministic_backward=deterministic.get("backward", True),
        existing=existing,
        overrides=overrides,
    )


def _check_dtypes(table: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Note a dtype that is refused twice, or refused and promised."""
    seen: set[str] = set()
    for index, refused in enumerate(table.get("unsupported", ())):
        where = f"{join(path, 'unsupported')}[{index}].dtype"
        if refused.dtype in table.get("dtypes", ()):
            problems.add(where, f'is "{refused.dtype}", which dtypes promises; take it out of one of the two')
        if refused.dtype in seen:
            problems.add(where, f'is "{refused.dtype}", which is listed above it')
        seen.add(refused.dtype)
