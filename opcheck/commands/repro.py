"""Shrink a failing case and write a script that shows the failure alone.

The script exits with 1 while the bug is there, with 0 when it is gone, and with 2 when that cannot be told.

exit status: 0 the script is written and was seen to fail; 1 written, but it does not fail every time; 4 usage or
configuration; 5 nothing to reproduce
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from opcheck.checks import all_checks
from opcheck.commands.audit import add_timeout, seconds
from opcheck.commands.streams import say, show
from opcheck.core.case import Case
from opcheck.core.finding import Finding
from opcheck.core.gate import ExitStatus
from opcheck.core.policy import LEVELS
from opcheck.core.report import CaseReport
from opcheck.core.shrink import Shrunk, elements
from opcheck.core.verdict import Verdict
from opcheck.errors import OpcheckError
from opcheck.repro.shrinking import Smallest, audited, failures, needed, smallest
from opcheck.repro.writing import STANDALONE, Written, about, folder_for, write
from opcheck.session import Options, Session
from opcheck.session.fitting import BACKENDS

SHRINK_SECONDS = 20.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("case", metavar="CASE_ID", help="id of a failing case, as the audit prints it; quote it")
    parser.add_argument("--check", default="", metavar="CHECK", help="the check whose failure is meant")
    parser.add_argument("--tensor", default="", metavar="NAME", help="the tensor whose failure is meant")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false", help="keep the case as it is")
    parser.add_argument(
        "--shrink-seconds", type=seconds, default=SHRINK_SECONDS, metavar="SECONDS",
        help=f"longest time to shrink (default: {SHRINK_SECONDS:g})",
    )  # fmt: skip
    parser.add_argument(
        "--bisect", action="store_true",
        help="write it for `git bisect run`: 125 when it cannot be told, in a process of its own",
    )  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="default: .opcheck/repro beside the registry")
    parser.add_argument("--level", choices=LEVELS, default="standard", help="of the audit (default: standard)")
    add_timeout(parser)


def run(arguments: argparse.Namespace) -> int:
    """Find the failure, shrink it, write its script and say what came of it."""
    case = Case.parse(arguments.case)
    options = Options(
        registry=arguments.registry,
        backend=case.backend if case.backend in BACKENDS else "auto",
        level=arguments.level,
        checks=(arguments.check,) if arguments.check else (),
        cases=(case.id,),
        workers=1,
        plugins=not arguments.no_plugins,
        timeout=arguments.timeout,
    )
    with Session.open(options) as session:
        session.plan()  # refuses an op that there is not, and a case that does not fit it
        folder = _folder(session, arguments.output)
        report = audited(session, case, needed(arguments.check) if arguments.check else tuple(all_checks()))
        finding = _chosen(report, arguments)
        if finding is None:
            return ExitStatus.NOTHING
        found = Smallest(shrunk=Shrunk(case=case, tried=0, whole=True), finding=finding)
        if arguments.shrink:
            say(f"{finding.check} of {finding.tensor} fails; shrinking for at most {arguments.shrink_seconds:g} s")
            found = smallest(session, case, finding, arguments.shrink_seconds)
        described = about(session, found.shrunk.case, case, found.finding, bisect=arguments.bisect)
        try:
            written = write(session, described, folder)
        except OSError as error:
            raise _unwritable(folder, error) from error
    return _conclude(arguments, report, found, written)


def _folder(session: Session, wanted: Path | None) -> Path:
    """Make the folder now, not after the work."""
    try:
        return folder_for(session, wanted)
    except OSError as error:
        raise _unwritable(wanted or Path(session.payload["root"]) / ".opcheck", error) from error


def _unwritable(folder: Path, error: OSError) -> OpcheckError:
    return OpcheckError(f"cannot write to {folder}: {error.strerror or error}; name another folder with -o DIR")


def _chosen(report: CaseReport, arguments: argparse.Namespace) -> Finding | None:
    """Return the failure that is meant; where none is named, the first of those that a script may show without opcheck.

    Where there is none, say what there is.
    """
    found = sorted(failures(report), key=lambda item: item.check not in STANDALONE)
    for item in found:
        if arguments.check in ("", item.check) and arguments.tensor in ("", item.tensor):
            return item
    if found:
        named = " of ".join(filter(None, (arguments.check, arguments.tensor)))
        there = ", ".join(f"{item.check} of {item.tensor}" for item in found)
        say(f"opcheck: nothing to reproduce: {named} does not fail in {report.id}; what fails is {there}")
        return None
    unclear = [item for item in report.findings if item.verdict is Verdict.INCONCLUSIVE]
    more = f": {unclear[0].check} of {unclear[0].tensor}: {unclear[0].detail}" if unclear else ""
    state = "cannot be judged" if unclear else "passes"
    by = f" {arguments.check}" if arguments.check else ""
    say(f"opcheck: nothing to reproduce: {report.id} {state}{by}{more}")
    return None


def _conclude(arguments: argparse.Namespace, report: CaseReport, found: Smallest, written: Written) -> int:
    shrunk, finding = found.shrunk, found.finding
    before, after = elements(Case.parse(report.id)), elements(shrunk.case)
    show(f"{finding.verdict} {finding.check}  {shrunk.case.id}  {finding.tensor}\n  {finding.detail}\n")
    if shrunk.tried:
        ended = "" if shrunk.whole else "; ended for want of time, --shrink-seconds gives it more"
        show(f"shrunk from {before} elements to {after} in {shrunk.tried} runs{ended}\n")
    for item in failures(report):
        if (item.check, item.tensor) != (finding.check, finding.tensor):
            flags = f"--check {item.check} --tensor {shlex.quote(item.tensor)}"
            show(f"it also fails {item.check} of {item.tensor}: {flags}\n")
    alone = "on its own" if written.alone else "through opcheck"
    show(f"script ({alone}): python {shlex.quote(str(written.file))}\n")
    if arguments.bisect:
        show(f"git bisect start BAD GOOD && git bisect run python {shlex.quote(str(written.file))}\n")
    if written.shows:
        return ExitStatus.OK
    last = (written.said.splitlines() or ["nothing"])[-1]
    say(f"opcheck: the script was run and did not show the failure; it said: {last}")
    return ExitStatus.CLOSED
