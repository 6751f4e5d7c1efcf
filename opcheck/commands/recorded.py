"""Answer an audit from evidence where nothing has changed since: `--fresh`, `--evidence FILE`. Imports no torch."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from opcheck.backends.present import backend_of
from opcheck.commands.streams import say
from opcheck.core.following import following
from opcheck.core.report import AuditReport
from opcheck.declared.file import document, find
from opcheck.declared.plugins import plugins
from opcheck.errors import PolicyError
from opcheck.evidence.answers import Answers, Asked, answer, told
from opcheck.evidence.here import Here
from opcheck.evidence.store import Store, default_file

VARIABLE = "OPCHECK_EVIDENCE"  # what --evidence says where it is not given
OFF = "off"


def add_evidence(parser: argparse.ArgumentParser) -> None:
    """Declare the flags about evidence."""
    parser.add_argument("--fresh", action="store_true", help="audit again what earlier audits have evidence of")
    parser.add_argument(
        "--evidence", metavar="FILE", default=os.environ.get(VARIABLE, ""),
        help=f"keep evidence there, not in .opcheck/evidence beside the registry; {OFF!r} keeps none",
    )  # fmt: skip


def kept(arguments: argparse.Namespace) -> Store | None:
    """Return the evidence that there is for an audit; None where none is kept.

    Raises:
        OpcheckError: The file that `--evidence` names is no evidence.
    """
    if arguments.evidence == OFF or arguments.sanitize or arguments.collect:
        return None
    if plugins(wanted=not arguments.no_plugins):
        return None  # what a plug-in's ops rest on is not watched
    if arguments.evidence:
        return Store(Path(arguments.evidence), named=True)
    try:
        root = (arguments.registry or find()).resolve().parent
    except PolicyError:
        return None
    store = Store(default_file(root, backend_of(arguments.backend), arguments.level))
    if store.problem:
        say(f"opcheck: {store.problem}")
    return store if store.kept else None


def answered(arguments: argparse.Namespace, store: Store, *, brief: bool) -> AuditReport | None:
    """Return the report of an audit that need not run, and say that it is an old one; None where it must run.

    Args:
        brief: Whether the report is only printed as a table.
    """
    narrowed = arguments.case or arguments.keyword or arguments.check
    if arguments.fresh or arguments.coverage or narrowed or not store.lines:
        return None
    try:
        path = (arguments.registry or find()).resolve()
        declared = document(path)
    except PolicyError:
        return None
    asked = Asked(
        backend=backend_of(arguments.backend), level=arguments.level, seed=arguments.seed, budget=arguments.budget,
        brief=brief,
    )  # fmt: skip
    answers = Answers(store, Here(path.parent), declared, asked)
    found = answer(answers, declared, path, () if arguments.all else tuple(arguments.ops), arguments.level)
    if found is None:
        return None
    report, lines = found
    say(f"opcheck: {told(lines, 0)}")
    return following(report, registry=str(arguments.registry or ""), whole=bool(arguments.all))
