"""The printed report, letter by letter."""

from dataclasses import replace

import pytest

from opcheck.render.text import MOST_FAILURES, render, worst_rows
from tests.core.reports import FAIL, INCONCLUSIVE, PASS, case, failing, finding, passing, report, row

PASSING = """\
ops::rms_norm  PASS
  x * rsqrt(mean(x^2) + eps) * weight  (normalization)  ops/rms_norm/kernel.py:12
  Tensor            Ref/golden    Condition    Target error    Threshold    Gate valid    Verdict
  ----------------  ------------  -----------  --------------  -----------  ------------  ---------
  out (float16)     2.0e-04       -            2.0e-04         4.3e-04      yes           PASS
  grad x (float16)  2.0e-04       -            4.0e-04         4.3e-04      yes           PASS
  tested: 2 cases, Triton interpreted; float16; shapes 5 x 129, 1 x 1; values normal
  not covered: shape rows=4096, cols=4096: too large for the interpreter; audit it on a GPU
  stages: basic correctness holds, dtype sensitivity holds, edge cases holds, determinism holds, \
stress not covered; not production ready
"""

FAILING = """\
ops::softmax  FAIL
  exp(x) / sum(exp(x))  (normalization)  ops/softmax/kernel.py:9
  Tensor            Ref/golden    Condition    Target error    Threshold    Gate valid    Verdict
  ----------------  ------------  -----------  --------------  -----------  ------------  ------------
  out (float16)     2.0e-01       1.5e+03      3.0e-01         4.0e-01      no (20%)      INCONCLUSIVE
  grad x (float16)  2.0e-04       -            9.9e-04         4.3e-04      yes           FAIL
  tested: 3 cases, Triton interpreted; float16; shapes 5 x 129, 3 x 129; values normal, extreme_logits
  limitation: determinism of out is waived: atomics (until 2027-03-31)
  limitation: limit 0
  limitation: limit 1
  limitation: limit 2
  limitation: limit 3
  limitation: limit 4
  limitation: 2 more (-v lists them)
  stages: basic correctness fails, dtype sensitivity not covered, edge cases not covered, determinism fails, \
stress not covered; not production ready
"""

FAILURES = """\
FAIL numerics  ops::softmax[float16;rows=3,cols=129;normal;;;;0]@cpu  grad x
  The target is at most 2x as far from golden as the reference is, plus the rounding floor.
  measured 9.3e-04, allowed 4.3e-04 (2 x 2.0e-04 + 3.1e-05), worst at [2, 128]
  looks like: the tail of the last tile (cols % 128) is not masked
  and in 1 more case
  again: python -m opcheck audit --backend cpu --case 'ops::softmax[float16;rows=3,cols=129;normal;;;;0]@cpu'

INCONCLUSIVE numerics  ops::softmax[float16;rows=5,cols=129;extreme_logits;;;;0]@cpu  out
  The target is at most 2x as far from golden as the reference is, plus the rounding floor.
  the reference itself is 20% of the scale from golden
  again: python -m opcheck audit --backend cpu --case 'ops::softmax[float16;rows=5,cols=129;extreme_logits;;;;0]@cpu'
"""

CASES = """\
  FAIL  ops::softmax[float16;rows=5,cols=129;normal;;;;0]@cpu  0.25 s
  FAIL  ops::softmax[float16;rows=3,cols=129;normal;;;;0]@cpu  0.25 s
  INCONCLUSIVE  ops::softmax[float16;rows=5,cols=129;extreme_logits;;;;0]@cpu  0.25 s
"""


def closed(*ops, **changes):
    return report(*ops, verdict=FAIL, exit_status=1, **changes)


def test_an_op_that_passes():
    assert render(report(passing())) == PASSING + "\n1 op, 2 cases: 1 PASS; may merge (exit 0)\n"


def test_an_op_that_fails_beside_one_that_passes():
    expected = f"{PASSING}\n{FAILING}\n{FAILURES}\n2 ops, 5 cases: 1 PASS, 1 FAIL; may not merge (exit 1)\n"
    assert render(closed(passing(), failing())) == expected


def test_quiet_tells_only_failures_and_the_end():
    expected = f"{FAILURES}\n2 ops, 5 cases: 1 PASS, 1 FAIL; may not merge (exit 1)\n"
    assert render(closed(passing(), failing()), verbosity=-1) == expected
    assert render(report(passing()), verbosity=-1) == "1 op, 2 cases: 1 PASS; may merge (exit 0)\n"


def test_verbose_tells_every_limitation_and_case():
    every = "  limitation: limit 5\n  limitation: limit 6\n"
    whole = FAILING.replace("  limitation: 2 more (-v lists them)\n", every)
    expected = f"{whole}{CASES}\n{FAILURES}\n1 op, 3 cases: 1 FAIL; may not merge (exit 1)\n"
    assert render(closed(failing()), verbosity=1) == expected


def test_what_closes_the_gate_stands_before_the_end():
    text = render(closed(passing(), problems=("ops::new is registered and not declared", "a waiver has expired")))
    assert text == (
        f"{PASSING}\nCLOSED  ops::new is registered and not declared\nCLOSED  a waiver has expired\n"
        "\n1 op, 2 cases: 1 PASS; may not merge (exit 1)\n"
    )


def test_an_interrupted_audit_says_so():
    text = render(replace(report(passing()), exit_status=2, complete=False), verbosity=-1)
    assert text == "1 op, 2 cases: 1 PASS; may not merge (exit 2); ended early: this is what was finished\n"


def test_no_op_and_no_case():
    nothing = report(verdict=INCONCLUSIVE, exit_status=5)
    assert render(nothing) == "0 ops, 0 cases: nothing audited; may not merge (exit 5)\n"
    bare = replace(passing(), cases=(), formula="", kind="", place="", not_covered=(), stages={}, verdict=INCONCLUSIVE)
    assert render(report(bare, verdict=INCONCLUSIVE, exit_status=1)) == (
        "ops::rms_norm  INCONCLUSIVE\n"
        "  tested: nothing, Triton interpreted\n"
        "  stages: basic correctness not covered, dtype sensitivity not covered, edge cases not covered, "
        "determinism not covered, stress not covered; not production ready\n"
        "\n1 op, 0 cases: 1 INCONCLUSIVE; may not merge (exit 1)\n"
    )


def test_a_waived_failure_is_no_failure():
    waived = finding("out", FAIL, detail="measured 1", waived="known (until 2027-03-31)")
    item = replace(passing(), cases=(case("ops::rms_norm", PASS, findings=(waived,)),))
    assert "measured 1" not in render(report(item), verbosity=-1)
    open_ = replace(passing(), cases=(case("ops::rms_norm", FAIL, findings=(replace(waived, waived=""),)),))
    assert "measured 1" in render(closed(open_), verbosity=-1)


@pytest.mark.parametrize("stress", ["holds", "fails"])
def test_only_five_stages_that_hold_are_production_ready(stress):
    text = render(report(replace(passing(), stages=passing().stages | {"stress": stress})))
    assert (f"stress {stress}; production ready" in text) == (stress == "holds")


def test_the_worst_is_told_first_and_each_kind_on_its_smallest_case():
    small = case("ops::p", INCONCLUSIVE, size="n=1", findings=(finding("out", INCONCLUSIVE),))
    large = case("ops::p", FAIL, size="n=9", findings=(finding("out", FAIL), finding("out", INCONCLUSIVE)))
    text = render(closed(replace(passing(), cases=(large, small))), verbosity=-1)
    heads = [line for line in text.splitlines() if line.startswith(("FAIL", "INCONCLUSIVE"))]
    assert heads == [
        "FAIL numerics  ops::p[float16;n=9;normal;;;;0]@cpu  out",
        "INCONCLUSIVE numerics  ops::p[float16;n=1;normal;;;;0]@cpu  out",
    ]


@pytest.mark.parametrize("kinds", [MOST_FAILURES, MOST_FAILURES + 1, MOST_FAILURES + 3])
def test_so_many_kinds_of_failure_are_told_and_the_rest_counted(kinds):
    found = tuple(finding(f"grad x{at}", FAIL, detail="far off") for at in range(kinds))
    text = render(closed(replace(passing(), cases=(case("ops::rms_norm", FAIL, findings=found),))), verbosity=-1)
    assert text.count("far off") == MOST_FAILURES
    more = f"{kinds - MOST_FAILURES} more kinds of failure in ops::rms_norm; --format json lists them all"
    assert (more in text) == (kinds > MOST_FAILURES)


@pytest.mark.parametrize(("rows", "chosen"), [
    ([row("out", target=1e-4), row("out", target=3e-4)], [3e-4]),
    ([row("out", target=3e-4), row("out", target=1e-4)], [3e-4]),
    ([row("out", FAIL, target=1e-4), row("out", target=3e-4)], [1e-4]),
    ([row("out", target=1e-4), row("out", dtype="float32", target=3e-4)], [1e-4, 3e-4]),
    ([row("out", target=1e-4), row("grad x", target=3e-4)], [1e-4, 3e-4]),
    ([row("out", FAIL, target=1e-3), replace(row("out", FAIL, target=1e-5), threshold=0.0)], [1e-5]),
])  # fmt: skip
def test_the_table_has_the_worst_row_of_each_tensor_and_dtype(rows, chosen):
    cases = [case("ops::p", PASS, tensors=(item,)) for item in rows]
    assert [item.target_error for item in worst_rows(cases)] == chosen


@pytest.mark.parametrize(("ratio", "written"), [
    (0.2, "no (20%)"), (10.0, "no (1000%)"), (11.0, "no (over 1000%)"), (float("inf"), "no (over 1000%)"),
])  # fmt: skip
def test_an_invalid_gate_says_how_far_the_reference_is(ratio, written):
    item = row("out", INCONCLUSIVE, gate_valid=False, reference_relative_error=ratio)
    text = render(closed(replace(passing(), cases=(case("ops::rms_norm", INCONCLUSIVE, tensors=(item,)),))))
    assert f"  {written} " in text


def test_the_way_to_run_a_failure_again_names_the_registry_that_was_named():
    text = render(closed(failing()), verbosity=-1, registry="my kernels/registry.toml")
    again = [line for line in text.splitlines() if line.startswith("  again: ")]
    assert len(again) == 2
    for line in again:
        assert line.startswith(
            "  again: python -m opcheck audit --registry 'my kernels/registry.toml' --backend cpu --"
        )


def test_many_shapes_are_counted_unless_verbose():
    cases = tuple(case("ops::rms_norm", PASS, size=f"rows={rows},cols=3") for rows in range(1, 15))
    (brief,) = (line for line in render(report(replace(passing(), cases=cases))).splitlines() if "tested:" in line)
    assert brief == (
        "  tested: 14 cases, Triton interpreted; float16; shapes 1 x 3, 2 x 3, 3 x 3, 4 x 3, 5 x 3, 6 x 3, 7 x 3, "
        "8 x 3, 9 x 3, 10 x 3, 11 x 3, 12 x 3 and 2 more; values normal"
    )
    assert "12 x 3, 13 x 3, 14 x 3; values" in render(report(replace(passing(), cases=cases)), verbosity=1)


def test_what_would_have_been_caught_is_told_of_the_bluntest_tensor_and_in_full_when_verbose():
    sharp = replace(row("out", scale=1.0), threshold=1e-3)
    blunt = replace(row("grad x", scale=2.0), threshold=0.5)
    op = replace(passing(), cases=(case("ops::rms_norm", PASS, tensors=(sharp, blunt)),))
    lines = [line for line in render(report(op)).splitlines() if "catches" in line]
    assert lines == [
        "  catches: one wrong element of any tensor, from 2.5e-01 of the scale on; least of grad x (float16)"
    ]
    lines = [line for line in render(report(op), verbosity=1).splitlines() if "catches" in line]
    where = "in ops::rms_norm[float16;rows=5,cols=129;normal;;;;0]@cpu"
    assert lines == [
        f"  catches: one wrong element of out (float16), from 1.0e-03 of the scale on, {where}",
        f"  catches: one wrong element of grad x (float16), from 2.5e-01 of the scale on, {where}",
    ]
