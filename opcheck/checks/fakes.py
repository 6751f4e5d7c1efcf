"""The registered fake says what the op gives, on every shape, layout and dtype, forward and backward.

`torch.library.opcheck` asks it once for each dtype, on contiguous inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, compared, example
from opcheck.core.finding import Finding
from opcheck.core.forms import Faked, FakeRun, Form
from opcheck.core.outcome import Compare, Compared, Raised, Returned, Trial
from opcheck.core.verdict import Verdict

OP = "the op"
DENSE = frozenset({"transposed", "offset", "channels_last", "ones", "zero"})  # each element once, and no gaps


@dataclass(frozen=True, slots=True, kw_only=True)
class FakesLimits:
    """`fakes` has no limits: a fake is right or wrong."""


class Fakes:
    """The law of fakes."""

    name: ClassVar[str] = "fakes"
    law: ClassVar[str] = (
        "The fakes of op and backward give the shapes, strides, dtypes and devices that the kernels give, at any size."
    )
    requires: ClassVar[frozenset[str]] = frozenset({"library", "structure"})
    limits: ClassVar[type] = FakesLimits

    def applies(self, subject: Subject) -> str:
        if not subject.registered:
            return "the target is a plain callable: it has no fake"
        return "" if subject.fake else "the adopted op has no fake"

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        if compared(seen) is None:
            return (Compare(),)
        return (FakeRun(), FakeRun(symbolic=True)) if subject.representative else (FakeRun(),)

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        evidence = compared(seen)
        if evidence is None:
            return ()
        findings = []
        for trial in (FakeRun(), FakeRun(symbolic=True)):
            lost = broken(seen, trial)
            if lost is not None:
                sizes = " with symbolic sizes" if trial.symbolic else ""
                said = str(lost).replace("target raised", "it raised") if isinstance(lost, Raised) else str(lost)
                findings.append(self._finding(OP, f"on fake tensors{sizes} {said}"))
        concrete, symbolic = answered(seen, FakeRun()), answered(seen, FakeRun(symbolic=True))
        if isinstance(concrete, Faked):
            findings += self._differences(subject, evidence.forms, concrete.forms)
        if isinstance(symbolic, Faked):
            findings += self._fixed(subject, symbolic)
        return tuple(findings)

    def _differences(self, subject: Subject, real: tuple[Form, ...], fake: tuple[Form, ...]) -> Iterator[Finding]:
        said = {form.tensor: form for form in fake}
        dense = DENSE.issuperset(subject.case.layouts.values())
        for form in real:
            other = said.get(form.tensor)
            if other is None:
                continue
            # A backward of torch's own operations on expanded or padded operands orders its axes differently on fakes.
            problem = _difference(form, other, strides=dense or not form.tensor.startswith("grad "))
            yield self._finding(form.tensor, problem, "allocate in the fake as the op does" if problem else "")

    def _fixed(self, subject: Subject, found: Faked) -> Iterator[Finding]:
        meant = {name for name, sizes in subject.contract.sizes.items() if len(sizes) == 1}
        fixed = [text for text in found.fixed if text.partition(" = ")[0] not in meant]
        problem = f"the fake turns {', '.join(fixed)} into a number" if fixed else ""
        yield self._finding(OP, problem, "keep sizes symbolic: no int(x.shape[0]), no range over a size")

    def _finding(self, tensor: str, problem: str, hint: str = "") -> Finding:
        return Finding(
            check=self.name, tensor=tensor, verdict=Verdict.FAIL if problem else Verdict.PASS, law=self.law,
            detail=problem or "as the op gives it", looks_like=hint if problem else "",
        )  # fmt: skip

    def controls(self) -> tuple[Control, ...]:
        def form(strides: tuple[int, int], shape: tuple[int, int] = (3, 129), dtype: str = "float32") -> Form:
            return Form(tensor="out", shape=shape, strides=strides, dtype=dtype, device="cpu")

        real, known = form((129, 1)), Returned(evidence=Faked(sizes=2))
        symbolic = FakeRun(symbolic=True)
        rows = (
            ("the same form", Verdict.PASS, form((129, 1)), known),
            ("another stride", Verdict.FAIL, form((1, 3)), known),
            ("another shape", Verdict.FAIL, form((128, 1), shape=(3, 128)), known),
            ("another dtype", Verdict.FAIL, form((129, 1), dtype="float16"), known),
            ("a size becomes a number", Verdict.FAIL, real, Returned(evidence=Faked(fixed=("cols = 129",), sizes=2))),
            ("the fake raises", Verdict.FAIL, real,
             Raised(role="target", phase="forward", error="RuntimeError", message="no fake impl registered")),
        )  # fmt: skip
        return tuple(
            Control(
                name=name,
                expect=expect,
                subject=example(),
                seen={
                    Compare(): Returned(evidence=Compared(tensors=(), forms=(real,))),
                    FakeRun(): Returned(evidence=Faked(forms=(fake,))),
                    symbolic: outcome,
                },
            )
            for name, expect, fake, outcome in rows
        )


def _difference(real: Form, fake: Form, *, strides: bool) -> str:
    """Say how a fake differs from what the op gave, empty where it does not."""
    for what, said, given in (
        ("shape", list(fake.shape), list(real.shape)),
        ("dtype", fake.dtype, real.dtype),
        ("device", fake.device, real.device),
    ):
        if said != given:
            return f"the fake gives {what} {said}, the op {given}"
    if strides and fake.significant_strides != real.significant_strides:
        return f"the fake gives strides {list(fake.strides)}, the op {list(real.strides)}, at shape {list(real.shape)}"
    return ""


check = Fakes()
