"""Audit ops, forward and backward, and say whether they may merge.

exit status: 0 may merge; 1 may not; 2 interrupted; 3 opcheck itself broke; 4 usage or configuration; 5 nothing was
audited
"""

from __future__ import annotations

import argparse
import sys

from opcheck.commands.output import Target, add_output, prepare, targets, write
from opcheck.commands.progress import progress
from opcheck.core.gate import ExitStatus
from opcheck.core.policy import LEVELS
from opcheck.errors import OpcheckError
from opcheck.session import Options, Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("ops", nargs="*", metavar="OP", help="names or globs of ops, for example 'ops::*norm'")
    parser.add_argument("--all", action="store_true", help="audit every registered op")
    parser.add_argument("-k", dest="keyword", default="", metavar="EXPRESSION", help="only cases whose id matches")
    parser.add_argument("--check", action="append", default=[], metavar="CHECK", help="only these checks (repeatable)")
    parser.add_argument("--case", action="append", default=[], metavar="ID", help="only this case (repeatable)")
    parser.add_argument("--level", choices=LEVELS, default="standard", help="how hard to look (default: standard)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything drawn (default: 0)")
    parser.add_argument("-n", dest="workers", type=_count, default=0, metavar="N", help="workers (default: the cores)")
    parser.add_argument("-x", "--exitfirst", action="store_true", help="stop at the first case that may not merge")
    parser.add_argument("--co", "--collect-only", dest="collect", action="store_true", help="print the cases and stop")
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="longest silence of a worker (default: 60)"
    )
    parser.add_argument("--durations", type=int, default=0, metavar="N", help="print the N slowest cases")
    add_backend(parser)
    add_output(parser)


def add_backend(parser: argparse.ArgumentParser) -> None:
    """Declare `--backend`."""
    parser.add_argument(
        "--backend", choices=("auto", "cpu", "cuda"), default="auto",
        help="cpu interprets Triton kernels; auto takes the GPU where there is one",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Audit, write the reports, return the exit status."""
    if not (arguments.ops or arguments.all or arguments.case):
        raise OpcheckError("audit what? name ops (globs work), or give --all, or --case ID")
    if arguments.timeout <= 0:
        raise OpcheckError(f"--timeout {arguments.timeout:g}: it should be more than 0 seconds")
    outputs = targets(arguments)
    prepare(outputs)
    options = Options(
        ops=() if arguments.all else tuple(arguments.ops),
        registry=arguments.registry,
        level=arguments.level,
        backend=arguments.backend,
        seed=arguments.seed,
        checks=tuple(arguments.check),
        cases=tuple(arguments.case),
        keyword=arguments.keyword,
        workers=arguments.workers,
        timeout=arguments.timeout,
        exitfirst=arguments.exitfirst,
    )
    with Session.open(options) as session:
        if arguments.collect:
            return _collect(session)
        report = session.audit(progress(quiet=arguments.quiet > 0))
    write(report, outputs, verbosity=arguments.verbose - arguments.quiet)
    if arguments.durations:
        _durations(report, arguments.durations, outputs)
    return report.exit_status


def _collect(session: Session) -> int:
    plans = session.plan()
    total = 0
    for plan in plans.values():
        for item in plan.cases:
            print(item.case.id)
            total += 1
    print(f"{total} cases of {len(plans)} ops", file=sys.stderr)
    return ExitStatus.OK if total else ExitStatus.NOTHING


def _durations(report: object, count: int, outputs: tuple[Target, ...]) -> None:
    from opcheck.core.report import AuditReport

    assert isinstance(report, AuditReport)
    cases = sorted((case for op in report.ops for case in op.cases), key=lambda case: -case.seconds)
    for case in cases[:count]:
        print(f"{case.seconds:8.2f} s  {case.id}", file=sys.stderr)


def _count(text: str) -> int:
    if text == "auto":
        return 0
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} should be a number of workers, 1 or more, or auto")
    return int(text)
