"""Reports made by hand, with fixed numbers, and a strategy that draws any report."""

import math

from hypothesis import strategies as st

from opcheck.core.finding import Finding
from opcheck.core.kernel_coverage import Difference, Gap, KernelCoverage, MaskSeen
from opcheck.core.pictures import ErrorMap, Histogram, Slope
from opcheck.core.report import STAGES, AuditReport, CaseReport, OpReport, TensorRow
from opcheck.core.verdict import Verdict

PASS, LIMITED, INCONCLUSIVE, FAIL = Verdict
LAW = "The target is at most 2x as far from golden as the reference is, plus the rounding floor."

verdicts = st.sampled_from(Verdict)
words = st.text(max_size=8)
numbers = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf])
lines = st.lists(numbers, max_size=3).map(tuple)
counts = st.lists(st.integers(0, 9), max_size=3).map(tuple)
pictures = st.one_of(
    st.builds(
        ErrorMap, unit=words, size=numbers, shape=counts, down=words, across=words, extent=counts, block=counts,
        tile=counts, cells=st.lists(lines, max_size=3).map(tuple),
    ),
    st.builds(Histogram, unit=words, edges=lines, target=counts, reference=counts),
    st.builds(
        Slope, dim=words, over=words, lengths=counts, target=lines, reference=lines, target_exponent=numbers,
        reference_exponent=numbers, excess=numbers, uncertainty=numbers,
    ),
)  # fmt: skip
findings = st.builds(
    Finding, check=words, tensor=words, verdict=verdicts, law=words, detail=words, looks_like=words,
    numbers=st.dictionaries(words, numbers, max_size=3), waived=words,
    not_covered=st.lists(words, max_size=2).map(tuple), place=words,
    pictures=st.lists(pictures, max_size=2).map(tuple),
)  # fmt: skip
rows = st.builds(
    TensorRow, tensor=words, dtype=words, reference_error=numbers, target_error=numbers,
    reference_relative_error=numbers, rounding_floor=numbers, threshold=numbers, protocol_threshold=numbers,
    gate_valid=st.booleans(), verdict=verdicts, condition=numbers,
)  # fmt: skip
cases = st.builds(
    CaseReport, id=words, verdict=verdicts, tensors=st.lists(rows, max_size=2).map(tuple),
    findings=st.lists(findings, max_size=2).map(tuple), skipped=st.dictionaries(words, words, max_size=2),
    seconds=st.floats(0, 1e6),
)  # fmt: skip
sentences = st.lists(words, max_size=2).map(tuple)
ops = st.builds(
    OpReport, op=words, verdict=verdicts, backend=words, cases=st.lists(cases, max_size=2).map(tuple),
    limitations=sentences, not_covered=sentences,
    stages=st.dictionaries(
        st.sampled_from(STAGES), st.sampled_from(["holds", "fails", "inconclusive", "not covered"]), max_size=3
    ),
    formula=words, kind=words, place=words, problems=sentences,
    contract=st.dictionaries(words, words, max_size=2),
)  # fmt: skip
kernels = st.builds(
    KernelCoverage, kernel=words, place=words, ops=sentences, lines=st.integers(0, 9), reached=st.integers(0, 9),
    excluded=st.integers(0, 9), specialisations=st.integers(0, 9), unlaunched=sentences,
    gaps=st.lists(st.builds(Gap, first=st.integers(1, 9), last=st.integers(1, 9), unless=words), max_size=2).map(tuple),
    masks=st.lists(
        st.builds(MaskSeen, line=st.integers(1, 9), access=words, mask=words, seen=sentences, block=st.booleans()),
        max_size=2,
    ).map(tuple),
    differences=st.lists(
        st.builds(
            Difference, specialisations=sentences, missing=sentences,
            never_partial=st.lists(st.integers(1, 9), max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)  # fmt: skip
reports = st.builds(
    AuditReport, ops=st.lists(ops, max_size=2).map(tuple), verdict=verdicts, exit_status=st.integers(0, 5),
    environment=st.dictionaries(words, words, max_size=2), policy_digest=words, problems=sentences,
    complete=st.booleans(), level=st.sampled_from(["quick", "standard", "full"]), schema=st.just(1),
    kernels=st.none() | st.lists(kernels, max_size=2).map(tuple),
)  # fmt: skip


def row(tensor, verdict=PASS, *, target=1.0e-4, reference=2.0e-4, dtype="float16", **changes):
    """A row whose threshold is 2 x reference + 3.1e-05."""
    threshold = 2 * reference + 3.1e-5
    figures = {"reference_relative_error": reference, "rounding_floor": 3.1e-5, "gate_valid": True} | changes
    return TensorRow(
        tensor=tensor, dtype=dtype, reference_error=reference, target_error=target, threshold=threshold,
        protocol_threshold=threshold, verdict=verdict, **figures,
    )  # fmt: skip


def finding(tensor="out", verdict=PASS, check="numerics", **changes):
    return Finding(check=check, tensor=tensor, verdict=verdict, law=LAW, **changes)


def case(name, verdict, dtype="float16", size="rows=5,cols=129", values="normal", **changes):
    return CaseReport(id=f"{name}[{dtype};{size};{values};;;;0]@cpu", verdict=verdict, seconds=0.25, **changes)


def passing():
    """An op of which everything holds but stress, which nobody tried."""
    name = "ops::rms_norm"
    return OpReport(
        op=name, verdict=PASS, backend="Triton interpreted", formula="x * rsqrt(mean(x^2) + eps) * weight",
        kind="normalization", place="ops/rms_norm/kernel.py:12",
        stages=dict.fromkeys(STAGES, "holds") | {"stress": "not covered"},
        not_covered=("shape rows=4096, cols=4096: too large for the interpreter; audit it on a GPU",),
        cases=(
            case(
                name, PASS, tensors=(row("out"), row("grad x", target=4.0e-4)),
                findings=(finding(), finding("grad x")),
            ),
            case(name, PASS, size="rows=1,cols=1", tensors=(row("out", target=2.0e-4),), findings=(finding(),)),
        ),
    )  # fmt: skip


def failing():
    """An op whose gradient fails on two cases, whose gate is invalid on one, and one failure of which is waived."""
    name = "ops::softmax"
    wrong = finding(
        "grad x", FAIL, detail="measured 9.3e-04, allowed 4.3e-04 (2 x 2.0e-04 + 3.1e-05), worst at [2, 128]",
        looks_like="the tail of the last tile (cols % 128) is not masked",
    )  # fmt: skip
    unsure = finding("out", INCONCLUSIVE, detail="the reference itself is 20% of the scale from golden")
    waived = finding(
        "out", FAIL, check="determinism", detail="1 of 10 runs differ", waived="atomics (until 2027-03-31)"
    )
    return OpReport(
        op=name, verdict=FAIL, backend="Triton interpreted", formula="exp(x) / sum(exp(x))", kind="normalization",
        place="ops/softmax/kernel.py:9", stages={"basic correctness": "fails", "determinism": "fails"},
        limitations=("determinism of out is waived: atomics (until 2027-03-31)", *(f"limit {k}" for k in range(7))),
        cases=(
            case(name, FAIL, tensors=(row("out"), row("grad x", FAIL, target=9.3e-4)), findings=(waived, wrong)),
            case(name, FAIL, size="rows=3,cols=129", tensors=(row("grad x", FAIL, target=9.9e-4),), findings=(wrong,)),
            case(
                name, INCONCLUSIVE, values="extreme_logits", findings=(unsure,),
                tensors=(row("out", INCONCLUSIVE, target=0.3, reference=0.2, gate_valid=False, condition=1531.0),),
            ),
        ),
    )  # fmt: skip


def report(*audited, verdict=PASS, exit_status=0, **changes):
    return AuditReport(
        ops=audited,
        verdict=verdict,
        exit_status=exit_status,
        environment={"torch": "2.13.0"},
        policy_digest="ab",
        **changes,
    )
