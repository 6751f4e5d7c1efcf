"""The table of the kernels, letter by letter."""

from opcheck.core.kernel_coverage import Difference, Gap, KernelCoverage, MaskSeen
from opcheck.render.kernels import MOST_ADVICE, table
from opcheck.render.text import render
from tests.core.reports import passing, report


def mask(line, *seen, block=True, access="load"):
    return MaskSeen(line=line, access=access, mask="at < n", seen=seen, block=block)


GAPPED = KernelCoverage(
    kernel="my.ops.kernel.forward", place="my/kernel.py:10", ops=("my::op",), lines=14, reached=11, excluded=2,
    gaps=(Gap(first=21, last=22, unless="`if CAUSAL` (line 20) was never true"), Gap(first=30, last=30)),
    masks=(
        mask(17, "all on", "partly on"), mask(18, "all on"), mask(19, "all on", "all off", access="store"),
        mask(24, "all on", block=False), mask(25, "all off", block=False),
    ),
    specialisations=9,
    differences=(
        Difference(specialisations=tuple(f"BLOCK={n}" for n in range(8)), missing=("12-13",), never_partial=(17,)),
    ),
    unlaunched=("BLOCK=128",),
)  # fmt: skip
WHOLE = KernelCoverage(kernel="my.ops.kernel.helper", place="my/kernel.py:3", ops=("my::op",), lines=4, reached=4)
IDLE = KernelCoverage(
    kernel="my.ops.kernel.old", place="my/kernel.py:40", lines=2, reached=0, gaps=(Gap(first=41, last=42),)
)

TABLE = """\
coverage of the kernels, by every case of the ops audited
  Kernel                    Lines               Missing lines    Partial masks    Never partial
  ------------------------  ------------------  ---------------  ---------------  ---------------
  forward  my/kernel.py:10  11/14 (2 excluded)  21-22, 30        1/5              18, 19, 24, 25
  helper  my/kernel.py:3    4/4                                  -
  old  my/kernel.py:40      0/2                 41-42            -
  my/kernel.py:21-22 never ran: `if CAUSAL` (line 20) was never true; declare a size, a variant or a dtype that gets \
there, or mark it `# opcheck: no cover`
  my/kernel.py:30 never ran; declare a size, a variant or a dtype that gets there, or mark it `# opcheck: no cover`
  my/kernel.py:18: the mask `at < n` of the load was only ever all on; add a size that fills a block in part
  my/kernel.py:19: the mask `at < n` of the store was only ever all on or all off; add a size that fills a block in part
  my/kernel.py:24: the mask `at < n` of the load was only ever on, and it has one lane; add a size or variant that \
turns it off
  my/kernel.py:25: the mask `at < n` of the load was only ever off, and it has one lane; add a size or variant that \
turns it on
  my/kernel.py:10: no case launches the configuration BLOCK=128: declare a size that it is not pruned for
  my/kernel.py:40: no case launches my.ops.kernel.old: register the op that does, delete it, or mark its def \
`# opcheck: no cover`"""

MORE = """
  my/kernel.py:17: the mask `at < n` of the load was all on and partly on, never all off
  my/kernel.py:10: 8 of 9 specialisations: never runs 12-13; never partial at 17: BLOCK=0 | BLOCK=1 | BLOCK=2 | \
BLOCK=3 | BLOCK=4 | BLOCK=5 and 2 more"""

KERNELS = (GAPPED, WHOLE, IDLE)


def test_the_table_and_what_to_do():
    assert table(KERNELS, verbose=False) == TABLE


def test_verbose_tells_how_specialisations_differ():
    assert table(KERNELS, verbose=True) == TABLE + MORE


def test_long_lists_are_cut():
    gaps = tuple(Gap(first=line, last=line) for line in range(10, 40, 2))
    item = KernelCoverage(kernel="m.f", place="m.py:1", ops=("a::a",), lines=20, reached=5, gaps=gaps)
    text = table([item], verbose=False)
    assert "10, 12, 14, 16, 18, 20, 9 more" in text
    assert f"  {15 - MOST_ADVICE} more (-v lists them)" in text.splitlines()
    assert "more" not in table([item], verbose=True).splitlines()[-1]


def test_no_kernels_is_said():
    assert table([], verbose=False).startswith("coverage: no Triton kernel was launched")


def test_the_report_has_it_where_it_was_asked_and_not_quiet():
    assert "coverage of the kernels" not in render(report(passing()))
    asked = report(passing(), kernels=KERNELS)
    assert f"\n\n{TABLE}\n\n1 op, " in render(asked)
    assert f"\n\n{TABLE}{MORE}\n\n1 op, " in render(asked, verbosity=1)
    assert "coverage" not in render(asked, verbosity=-1)
