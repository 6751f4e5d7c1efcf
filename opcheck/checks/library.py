"""`torch.library.opcheck`: is the op registered so that autograd, fakes and torch.compile can use it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, example
from opcheck.core.finding import Finding
from opcheck.core.outcome import Registered, Registration, Returned, Trial
from opcheck.core.verdict import Verdict

SCHEMA, AUTOGRAD, FAKE, AOT = (
    "test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic",
)  # fmt: skip

LAWS: Mapping[str, str] = {
    SCHEMA: "The op writes only into the arguments that its schema marks, and returns no argument or view of one.",
    AUTOGRAD: "The op's backward is registered with register_autograd, above the device kernels.",
    FAKE: "The fake returns the shapes, strides, dtypes and device that the op itself returns.",
    AOT: "Traced with symbolic shapes, forward and backward give what eager gives.",
}

# What torch says, and what it means for the author; the first that occurs in the message counts.
_TRANSLATIONS: tuple[tuple[str, str], ...] = (
    ("no autograd formula", "no backward is registered: use .register_autograd"),
    ("is not correctly registered for autograd", "no backward that torch can see: use .register_autograd"),
    ("autograd registration", "no backward that torch can see: use .register_autograd"),
    ("was not marked as mutable", "an argument is written to: name it in mutates_args"),
    ("mutated", "an argument is written to: name it in mutates_args"),
    ("alias", "an output is an input or a view of one: return a copy"),
    ("stride", "the fake returns other strides than the op: allocate as the op does"),
    ("dtype", "the fake returns another dtype than the op"),
    ("shape", "the fake returns another shape than the op"),
    ("fake impl", "no fake is registered, or it fails: use .register_fake"),
    ("data-dependent", "the fake looks at values, which fake tensors do not have"),
    ("specializ", "the fake turns a size into a constant: keep sizes symbolic"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryLimits:
    """`library` has no limits: registration is right or wrong."""


class Library:
    """The law of registration."""

    name: ClassVar[str] = "library"
    law: ClassVar[str] = "The op is registered as torch.library.opcheck demands."
    requires: ClassVar[frozenset[str]] = frozenset()
    limits: ClassVar[type] = LibraryLimits

    def applies(self, subject: Subject) -> str:
        if not subject.registered:
            return "the target is a plain callable, not a torch.library op"
        if not subject.representative:
            return "only the representative case of each dtype is put to torch.library.opcheck"
        if subject.case.values != "normal":
            return "torch.library.opcheck takes a NaN for a difference: it sees ordinary values only"
        return ""

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        return tuple(_trials(subject))

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        findings = []
        for trial in _trials(subject):
            lost = broken(seen, trial)
            evidence = answered(seen, trial)
            if lost is not None:
                findings.append(self._finding(trial, Verdict.FAIL, f"{trial.test} did not come back: {lost}"))
            elif isinstance(evidence, Registered) and evidence.failure:
                findings.append(self._finding(trial, Verdict.FAIL, f"{trial.test}: {evidence.failure}"))
            elif isinstance(evidence, Registered):
                findings.append(self._finding(trial, Verdict.PASS, trial.test))
        return tuple(findings)

    def _finding(self, trial: Registration, verdict: Verdict, detail: str) -> Finding:
        looks_like = translate(detail) if verdict is Verdict.FAIL else ""
        return Finding(
            check=self.name, tensor="the op", verdict=verdict, law=LAWS[trial.test], detail=detail,
            looks_like=looks_like,
        )  # fmt: skip

    def controls(self) -> tuple[Control, ...]:
        good: Seen = {trial: Returned(evidence=Registered()) for trial in _trials(example())}
        said = "Shapes torch.Size([3, 129]) and strides (129, 1) and (1, 3) are not equal"
        bad = {**good, Registration(test=FAKE): Returned(evidence=Registered(failure=said))}
        return (
            Control(name="all tests pass", expect=Verdict.PASS, seen=good, subject=example()),
            Control(name="the fake returns other strides", expect=Verdict.FAIL, seen=bad, subject=example()),
        )


def translate(message: str) -> str:
    """Return what a message of torch means for a kernel author, empty where it is not known."""
    lowered = message.lower()
    return next((meaning for sign, meaning in _TRANSLATIONS if sign in lowered), "")


def _trials(subject: Subject) -> tuple[Registration, ...]:
    contract = subject.contract
    loose = contract.random or not (contract.deterministic_forward and contract.deterministic_backward)
    tests = [SCHEMA, AUTOGRAD]
    if subject.fake:
        tests += [FAKE, AOT] if subject.level != "quick" else [FAKE]
    return tuple(Registration(test=test, nondeterministic=loose) for test in tests)


check = Library()
