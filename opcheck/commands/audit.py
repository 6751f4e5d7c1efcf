"""Audit ops, forward and backward, and say whether they may merge.

exit status: 0 may merge; 1 may not; 2 interrupted; 3 opcheck itself broke; 4 usage or configuration; 5 nothing was
audited
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from opcheck.commands.output import add_output, prepare, targets, write
from opcheck.commands.pictures import prepare_folder, write_pictures
from opcheck.commands.recorded import add_evidence, answered, kept
from opcheck.commands.streams import say, show
from opcheck.core.case import Case
from opcheck.core.gate import ExitStatus
from opcheck.core.policy import LEVELS
from opcheck.core.report import AuditReport, CaseReport
from opcheck.core.sanitizer import TOOLS
from opcheck.core.select import matcher
from opcheck.declared import find
from opcheck.errors import OpcheckError, PolicyError

if TYPE_CHECKING:
    from opcheck.session import Session

LONGEST_TIMEOUT = 604_800  # a week in seconds: no kernel is silent for longer, and select() takes it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("ops", nargs="*", metavar="OP", help="names or globs of ops, for example 'ops::*norm'")
    parser.add_argument("--all", action="store_true", help="audit every registered op")
    parser.add_argument("-k", dest="keyword", default="", metavar="EXPRESSION", help="only cases whose id matches")
    parser.add_argument("--check", action="append", default=[], metavar="CHECK", help="only these checks (repeatable)")
    parser.add_argument("--case", action="append", default=[], metavar="ID", help="only this case (repeatable)")
    parser.add_argument("--level", choices=LEVELS, default="standard", help="how hard to look (default: standard)")
    parser.add_argument(
        "--budget", type=_budget, metavar="SECONDS",
        help="what an op may take on one core before no more options are combined (default: 3, 18, 100 by level)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="seed of everything drawn (default: 0)")
    parser.add_argument(
        "-n", dest="workers", type=_count, default=0, metavar="N", help="workers (default: the cores; on a GPU 1)"
    )
    parser.add_argument("-x", "--exitfirst", action="store_true", help="stop at the first case that may not merge")
    parser.add_argument("--co", "--collect-only", dest="collect", action="store_true", help="print the cases and stop")
    parser.add_argument(
        "--sanitize", type=_names, default=(), metavar="TOOL,...",
        help=f"run small cases under {', '.join(TOOLS)} instead, and no other check (cuda only)",
    )  # fmt: skip
    add_timeout(parser)
    parser.add_argument("--durations", type=_count_or_none, default=0, metavar="N", help="print the N slowest cases")
    parser.add_argument(
        "--coverage", action="store_true",
        help="also record which lines of the kernels are reached, and which states their masks have",
    )  # fmt: skip
    parser.add_argument(
        "--pictures", type=Path, metavar="FOLDER",
        help="also draw what fails: error maps, histograms and slopes, one SVG file each",
    )  # fmt: skip
    add_backend(parser)
    add_evidence(parser)
    add_output(parser)


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """Declare `--timeout`."""
    parser.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="SECONDS", help="longest silence of a worker (default: 60)"
    )


def add_backend(parser: argparse.ArgumentParser) -> None:
    """Declare `--backend`."""
    parser.add_argument(
        "--backend", choices=("auto", "cpu", "cuda"), default="auto",
        help="cpu interprets Triton kernels; auto takes the GPU where there is one",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Audit, write the reports, return the exit status."""
    _refuse_selection(arguments)
    outputs = targets(arguments)
    prepare(outputs)
    prepare_folder(arguments.pictures)
    store = kept(arguments)
    brief = arguments.pictures is None and all(item.format == "table" for item in outputs)
    report = answered(arguments, store, brief=brief) if store is not None else None
    if report is None:
        with _open(arguments, store.file if store is not None else None) as session:
            if arguments.collect:
                return _collect(session)
            report = _audited(session, quiet=arguments.quiet > 0)
    written = write(
        report, outputs, verbosity=arguments.verbose - arguments.quiet, registry=str(arguments.registry or ""),
        contracts=_registry(arguments),
    )  # fmt: skip
    write_pictures(report, arguments.pictures)
    for case in _slowest(report)[: arguments.durations]:
        say(f"{case.seconds:8.2f} s  {case.id}")
    if arguments.keyword and not report.ops:
        say(f"opcheck: -k {arguments.keyword!r} matches no case; --co without it lists them")
    return report.exit_status if written else report.exit_status or ExitStatus.USAGE


def _registry(arguments: argparse.Namespace) -> Path | None:
    """Return the user's own registry, None where plug-ins bring the only ones."""
    try:
        return (arguments.registry or find()).resolve()
    except PolicyError:
        return None


def _open(arguments: argparse.Namespace, evidence: Path | None) -> Session:
    # What an audit needs is not imported where evidence answers for it.
    from opcheck.session import Options, Session

    return Session.open(
        Options(
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
            budget=arguments.budget,
            coverage=arguments.coverage,
            sanitize=arguments.sanitize,
            evidence=evidence,
            fresh=arguments.fresh,
            plugins=not arguments.no_plugins,
        )
    )


def _audited(session: Session, *, quiet: bool) -> AuditReport:
    from opcheck.commands.progress import progress

    return session.audit(progress(quiet=quiet), lambda sentence: say(f"opcheck: {sentence}"))


def _refuse_selection(arguments: argparse.Namespace) -> None:
    """Refuse, before anything starts, a selection that is empty, cannot be read, or is in part to be ignored."""
    if not (arguments.ops or arguments.all or arguments.case):
        raise OpcheckError("audit what? name ops (globs work), or give --all, or --case ID")
    if arguments.all and arguments.ops:
        raise OpcheckError(f"--all audits every op; leave it out, or {' '.join(arguments.ops)}")
    if arguments.case and (arguments.ops or arguments.all or arguments.keyword):
        raise OpcheckError("--case names one case of one op; leave out the names of ops, --all and -k")
    matcher(arguments.keyword)
    for text in arguments.case:
        Case.parse(text)


def _collect(session: Session) -> int:
    from opcheck.core.cases import coverage

    plans = session.plan()
    found = [item.case.id for plan in plans.values() for item in plan.cases]
    show("".join(f"{item}\n" for item in found))
    for name, plan in plans.items():
        combined = coverage(plan, (item.case for item in plan.cases))
        about = f"; {combined}" if combined.pairs else ""
        say(f"{name}: {len(plan.cases)} cases, about {combined.estimated_seconds:g} s of one core{about}")
    say(f"{len(found)} cases of {len(plans)} {'op' if len(plans) == 1 else 'ops'}")
    return ExitStatus.OK if found else ExitStatus.NOTHING


def _slowest(report: AuditReport) -> list[CaseReport]:
    return sorted((case for op in report.ops for case in op.cases), key=lambda case: -case.seconds)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))
    if not names:
        raise argparse.ArgumentTypeError(f"{text!r} names no sanitizer; there are {', '.join(TOOLS)}")
    return names


def seconds(text: str) -> float:
    """Read a flag's number of seconds.

    Raises:
        ArgumentTypeError: It is none, or not in range.
    """
    number = _number(text)
    if not 0 < number <= LONGEST_TIMEOUT:
        raise argparse.ArgumentTypeError(
            f"{text!r} should be a number of seconds, more than 0 and at most {LONGEST_TIMEOUT}"
        )
    return number


def _budget(text: str) -> float:
    seconds = _number(text)
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} should be a number of seconds, 0 or more")
    return seconds


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _count_or_none(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _count(text: str) -> int:
    if text == "auto":
        return 0
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} should be a number of workers, 1 or more, or auto")
    return int(text)
