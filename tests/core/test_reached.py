"""What the cases reached is put together over ops and specialisations, and held against the declared minimum."""

from __future__ import annotations

import pytest

from opcheck.core.kernel_coverage import (
    BLOCK,
    OFF,
    ON,
    PARTLY,
    Gap,
    KernelCoverage,
    Mask,
    MaskSeen,
    Ran,
    Source,
    Statement,
    ran_from,
    source_from,
)
from opcheck.core.policy import Contract, Override, Policy
from opcheck.core.reached import merged, shortfalls
from opcheck.core.report import to_json

SOURCE = Source(
    name="m.f", file="m.py", line=1,
    statements=(
        Statement(line=2), Statement(line=3), Statement(line=6), Statement(line=9, excluded=True),
        Statement(line=4, unless="a"), Statement(line=5, unless="a"), Statement(line=7, unless="b"),
        Statement(line=7, unless="c"),
    ),
    masks=(Mask(line=6, access="load", text="p"), Mask(line=3, access="store", text="q")),
)  # fmt: skip
ALL = tuple(range(8))


def ran(*statements, kernel="m.f", masks=None, **constants):
    return Ran(function=SOURCE.key, kernel=kernel, constants=constants, statements=statements, masks=masks or {})


def test_what_different_ops_reach_adds_up():
    found = merged(SOURCE, [("b::b", ran(0, 1, 4, 5)), ("a::a", ran(0, 2, 6))])
    assert (found.kernel, found.place, found.ops) == ("m.f", "m.py:1", ("a::a", "b::b"))
    # Line 7 has two statements, of which one ran; line 9 is excluded.
    assert (found.lines, found.reached, found.excluded) == (6, 5, 1)
    assert found.gaps == (Gap(first=7, last=7, unless="c"),)


def test_gaps_are_runs_of_lines_between_which_nothing_ran():
    assert [str(gap) for gap in merged(SOURCE, [("a::a", ran(0, 2))]).gaps] == ["3-5", "7"]
    assert [str(gap) for gap in merged(SOURCE, [("a::a", ran())]).gaps] == ["2-7"]
    assert merged(SOURCE, [("a::a", ran(*ALL))]).gaps == ()


@pytest.mark.parametrize(("states", "seen", "covered"), [
    ((ON | BLOCK,), ("all on",), False),
    ((OFF | BLOCK,), ("all off",), False),
    ((ON | BLOCK, OFF | BLOCK), ("all on", "all off"), False),
    ((PARTLY | BLOCK,), ("partly on",), True),
    ((ON | BLOCK, PARTLY | BLOCK, OFF | BLOCK), ("all on", "partly on", "all off"), True),
    ((ON,), ("all on",), False),
    ((OFF,), ("all off",), False),
    ((ON, OFF), ("all on", "all off"), True),
    ((ON, OFF | BLOCK), ("all on", "all off"), False),
])  # fmt: skip
def test_a_mask_must_be_partly_on_and_a_mask_of_one_lane_on_and_off(states, seen, covered):
    found = merged(SOURCE, [("a::a", ran(*ALL, masks={"0": state}, N=str(at))) for at, state in enumerate(states)])
    (mask,) = found.masks
    assert (mask.line, mask.access, mask.mask, mask.seen, mask.covered) == (6, "load", "p", seen, covered)


def test_specialisations_differ_by_what_others_reach():
    """One lane can never be partly on, so the specialisation of one lane lacks nothing."""
    parts = [
        ("a::a", ran(*ALL, masks={"0": ON | PARTLY | BLOCK, "1": ON | BLOCK}, N="8")),
        ("a::a", ran(*ALL[:4], masks={"0": ON | BLOCK, "1": ON | BLOCK}, N="4")),
        ("a::a", ran(*ALL[:4], masks={"0": ON | OFF | BLOCK}, N="2")),
        ("a::a", ran(*ALL, masks={"0": ON}, N="1")),
    ]
    found = merged(SOURCE, parts)
    (only,) = found.differences
    assert found.specialisations == 4
    assert (only.specialisations, only.missing, only.never_partial) == (("N=2", "N=4"), ("4-5", "7"), (6,))


def test_a_configuration_is_launched_where_its_constants_are():
    configs = ({"N": "8", "M": "1"}, {"N": "8", "M": "2"}, {})
    source = Source(name="m.f", file="m.py", line=1, configs=configs)
    found = merged(source, [("a::a", Ran(function=source.key, kernel="m.f", constants={"N": "8", "M": "2", "E": "0"}))])
    assert found.unlaunched == ("M=1, N=8",)
    assert merged(source, []).unlaunched == (), "that it is never launched says it all"


def test_what_goes_between_processes_comes_back():
    source = Source(name="m.f", file="m.py", line=1, statements=SOURCE.statements, masks=SOURCE.masks,
                    configs=({"N": "8"},))  # fmt: skip
    assert source_from(to_json(source)) == source
    item = ran(0, 3, masks={"1": ON | OFF}, N="8")
    assert ran_from(to_json(item)) == item


def kernel(name, *ops, reached, lines, partial=0, masks=0):
    seen = [MaskSeen(line=1, access="load", mask="m", seen=("partly on",), block=True)] * partial
    seen += [MaskSeen(line=1, access="load", mask="m", seen=("all on",), block=True)] * (masks - partial)
    return KernelCoverage(kernel=name, place=f"{name}:1", ops=ops, lines=lines, reached=reached, masks=tuple(seen))


def policy(defaults=None, own=None):
    def overrides(values):
        return (Override(check="coverage", dtype="", values=values, reason="r"),) if values else ()

    contract = Contract(name="a::a", kind="scan", dtypes=("float32",), dims=("n",), overrides=overrides(own))
    return Policy(defaults=overrides(defaults), ops={"a::a": contract})


KERNELS = (
    kernel("k", "a::a", reached=9, lines=10, partial=3, masks=4),
    kernel("shared", "a::a", "b::b", reached=9, lines=10),
    kernel("other", "b::b", reached=1, lines=10, masks=5),
)


@pytest.mark.parametrize(("defaults", "own", "problems"), [
    ({}, {}, []),
    ({"lines": 0.9, "masks": 0.75}, {}, []),
    ({"lines": 0.91}, {}, [
        "a::a: 18 of 20 (90.0%) of the lines of its kernels were reached, and coverage.lines asks for 91.0%; "
        "the table of kernels says what to add",
    ]),
    ({"masks": 0.8}, {}, [
        "a::a: 3 of 4 (75.0%) of the masks of its kernels were partly on, and coverage.masks asks for 80.0%; "
        "the table of kernels says what to add",
    ]),
    ({"lines": 0.91, "masks": 0.8}, {"lines": 0.5, "masks": 0.5}, []),
    ({}, {"lines": 1.0}, [
        "a::a: 18 of 20 (90.0%) of the lines of its kernels were reached, and coverage.lines asks for 100.0%; "
        "the table of kernels says what to add",
    ]),
])  # fmt: skip
def test_an_op_below_its_minimum_is_a_problem(defaults, own, problems):
    assert [*shortfalls(KERNELS, policy(defaults, own), ["a::a"], whole=False)] == problems


def test_an_op_without_kernels_has_nothing_to_reach():
    assert [*shortfalls((), policy({"lines": 1.0, "masks": 1.0}), ["a::a"], whole=True)] == []


def test_kernels_that_nothing_launches_are_a_problem_of_a_whole_audit_with_a_minimum():
    idle = (kernel("idle", reached=0, lines=3), kernel("lost", reached=0, lines=1), kernel("out", reached=0, lines=0))
    sentence = (
        "no case launches idle (idle:1), lost (lost:1), and defaults.coverage asks for lines; register the op that "
        "does, delete them, or mark them `# opcheck: no cover`"
    )
    assert [*shortfalls(idle, policy({"lines": 0.1}), [], whole=True)] == [sentence]
    assert [*shortfalls(idle, policy({"lines": 0.1}), [], whole=False)] == []
    assert [*shortfalls(idle, policy({"masks": 0.1}), [], whole=True)] == []
    assert [*shortfalls(idle, policy(), [], whole=True)] == []
