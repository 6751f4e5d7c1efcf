"""One picture of each kind, made by hand, and reports that show them."""

import math
from dataclasses import replace

from opcheck.core.pictures import ErrorMap, Histogram, Slope
from tests.core.reports import FAIL, LIMITED, PASS, case, failing, finding, passing, report, row

MAP = ErrorMap(
    unit="the threshold", size=4.3e-4, shape=(3, 10), down="rows", across="cols", extent=(3, 10), block=(1, 2),
    tile=(1, 4),
    cells=((0.5, 0.1, 1.0, 0.0, 1.01), (math.nan, 0.3, 0.2, 0.1, 40.0), (0.0, 0.0, 0.0, 0.0, math.inf)),
)  # fmt: skip
EVEN = Histogram(unit="ulp of golden", edges=(-1.5, -0.5, 0.5, 1.5), target=(3, 20, 0), reference=(0, 23, 0))
DOUBLING = Histogram(
    unit="the reference's RMS error", edges=(-2.0, -1.0, -0.5, 0.5, 1.0, 2.0), target=(0, 1, 9, 1, 5),
    reference=(1, 2, 9, 3, 1),
)  # fmt: skip
SLOPE = Slope(
    dim="cols", over="sum |t|", lengths=(4, 16, 64, 256, 1024), target=(1e-8, 3e-8, 9e-8, 2.7e-7, 8.1e-7),
    reference=(1e-8, 2e-8, 4e-8, 8e-8, 1.6e-7), target_exponent=0.79, reference_exponent=0.5, excess=0.29,
    uncertainty=0.02,
)  # fmt: skip
EVERY = (MAP, EVEN, DOUBLING, SLOPE)


def depicted():
    """The failing op, with pictures on the case that is told, a limitation with a slope, and a contract."""
    op = failing()
    first, told, unsure = op.cases
    wrong = replace(told.findings[0], pictures=(MAP, EVEN))
    excused = finding("out", LIMITED, detail="the same envelope", pictures=(DOUBLING, SLOPE))
    limited = case(op.op, LIMITED, values="large_mean", findings=(excused,), tensors=(row("out", LIMITED),))
    cases = (first, replace(told, findings=(wrong,)), unsure, limited)
    return replace(op, cases=cases, contract={"dims": "rows, cols", "dtypes": "float16"})


def mixed():
    """A report with an op that passes and one that does not."""
    return report(passing(), depicted(), verdict=FAIL, exit_status=1)


def large(ops=25, cases=100):
    """A registry of a size that exists: all right but for one case of each twelfth op."""
    found = []
    for at in range(ops):
        name = f"ops::kernel_{at}"
        wrong = finding("out", FAIL, detail="measured 9.3e-04, allowed 4.3e-04", looks_like="a tail", pictures=EVERY)
        every = [
            case(
                name, PASS, size=f"rows={n},cols=129", values="normal",
                findings=tuple(finding(tensor, check=check) for check in CHECKS for tensor in ("out", "grad x")),
                tensors=(row("out"), row("grad x")), skipped={"ulp": "the op's kind is normalization"},
            )
            for n in range(1, cases)
        ]  # fmt: skip
        bad = case(name, FAIL, findings=(wrong,)) if at % 12 == 0 else case(name, PASS, findings=(finding(),))
        found.append(replace(passing(), op=name, cases=(*every, bad), verdict=bad.verdict))
    return report(*found, verdict=FAIL, exit_status=1)


CHECKS = (
    "autograd", "bias", "compile", "composition", "determinism", "fakes", "intact", "library", "memory", "numerics",
    "oracle", "randomness", "refusal", "slices", "stress", "structure", "ulp",
)  # fmt: skip
