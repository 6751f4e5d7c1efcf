"""What may ship: the tables `[gate]`, `[[waiver]]` and `[[change]]`."""

from __future__ import annotations

from opcheck.core.age import CALLED, FORM, age_of
from opcheck.core.kernel_coverage import COVERAGE
from opcheck.core.policy import LEVELS, Change, GatePolicy, Level, Waiver
from opcheck.core.schema import Date, Glob, ListOf, Record, Text
from opcheck.core.verdict import Verdict
from opcheck.declared import contract
from opcheck.declared.names import REASON

FACTS = ("dtype", "tensor", "values", "layout", "variant", "backend")
WHOLES = ("op", "oracle", "cases")  # what a change may be of, beside a contract's keys and the checks


def _gate(
    accept: tuple[str, ...] = (), backends: tuple[str, ...] = (), level: Level = "standard", max_age: str = ""
) -> GatePolicy:
    default = GatePolicy()
    accepted = frozenset(map(Verdict, accept)) or default.accept
    return GatePolicy(accept=accepted, backends=backends or default.backends, level=level, max_age=age_of(max_age))


GATE = Record(
    doc="What may ship.",
    optional={
        "accept": ListOf(
            doc="Verdicts that may ship. A known FAIL ships by a waiver, which has a reason and a date.",
            item=Text(choices=tuple(str(verdict) for verdict in Verdict if verdict is not Verdict.FAIL)),
            least=1,
            unique=True,
        ),
        "backends": ListOf(
            doc="Backends on which a merge needs evidence.",
            item=Text(
                pattern=r"cpu|cuda(?::sm_[0-9]+[a-z]?)?", called="cpu, cuda or an architecture such as cuda:sm_90"
            ),
            least=1,
            unique=True,
        ),
        "level": Text(doc="The lowest level of an audit that counts as evidence.", choices=LEVELS),
        "max_age": Text(doc='How old evidence may be, such as "14d".', pattern=FORM, called=CALLED),
    },
    build=_gate,
)


def waiver(checks: tuple[str, ...]) -> Record:
    """Return the shape of one known failure."""
    where = {fact: Text(blank=True) for fact in FACTS}
    return Record(
        required={
            "op": Text(doc="Qualified name of the op, or a glob."),
            "check": Glob(doc="The check, or a glob.", over=checks),
            "reason": REASON,
            "until": Date(doc="The last day on which it holds."),
        },
        optional={"where": Record(doc="What the failure is narrowed to.", optional=where)},
        build=Waiver,
    )


def change(checks: tuple[str, ...]) -> Record:
    """Return the shape of one promise taken back knowingly."""
    keys = (*WHOLES, *contract.REQUIRED, *contract.OPTIONAL, *checks, COVERAGE)
    return Record(
        required={
            "op": Text(doc="Qualified name of the op, or a glob."),
            "what": Text(
                doc="What changed: op (it is gone), oracle, cases, a key of its contract, or a check (its limits).",
                choices=keys,
            ),
            "reason": REASON,
        },
        build=Change,
    )
