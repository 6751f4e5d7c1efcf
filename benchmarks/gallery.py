"""Audit the whole gallery of broken kernels and write what was caught, and by what: `make gallery`.

Exits with 1 where a broken kernel is not caught as `tests/broken/expected.py` says, or a right twin does not pass.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

GALLERY = ROOT / "tests" / "broken" / "gallery"
LONGEST = 110  # characters of a failure's detail in the table

HEAD = """# The gallery of broken kernels

Each mechanism is a small kernel in `tests/broken/gallery/` with one fault, and a twin that differs only there. The
broken one must be caught by the checks named here and by no other, the right one must pass on all of its cases. Numbers
such as K034 are public reports of the same mistake in other projects' kernels; the code here is written from the
mechanism. `docs/limits.md` says which public reports are not here, and why. Written by `make gallery`.

{measured}

| mechanism | report | what is wrong | caught by | on | it says | right twin |
| --- | --- | --- | --- | --- | --- | --- |
"""


def main() -> int:
    """Read the arguments, audit, print or write the table; return the exit status."""
    from opcheck.core.policy import LEVELS
    from opcheck.session import Options, audit
    from tests.broken.expected import EXPECTED

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=0.0, help="seconds an op for cases that combine options")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("-n", dest="workers", type=int, default=0)
    parser.add_argument("-o", dest="page", type=Path, help="write the page here instead of printing it")
    parser.add_argument("mechanisms", nargs="*", help="all of them unless given")
    arguments = parser.parse_args()
    names = arguments.mechanisms or list(EXPECTED)
    started = time.perf_counter()
    reports = [
        audit(
            Options(
                registry=GALLERY.parent / "registry.toml", level=level, backend=arguments.backend,
                budget=arguments.budget, workers=arguments.workers,
                ops=tuple(f"{twin}::{name}" for name in chosen for twin in ("broken", "right")),
            )
        )
        for level in LEVELS
        if (chosen := [name for name in names if EXPECTED[name].level == level])
    ]  # fmt: skip
    ops = {op.op: op for report in reports for op in report.ops}
    rows, problems = [], [problem for report in reports for problem in report.problems]
    for name in sorted(names):
        row, wrong = _row(name, EXPECTED[name], ops)
        rows.append(row)
        problems += wrong
    cases = sum(len(op.cases) for op in ops.values())
    full = sum(EXPECTED[name].level == "full" for name in names)
    measured = (
        f"{len(names)} mechanisms, {full} of them at level full, {cases} cases on "
        f"{reports[0].environment['device']} in "
        f"{time.perf_counter() - started:.0f} s; {len(problems)} deviations from what is expected."
    )
    page = HEAD.format(measured=measured) + "\n".join(rows) + "\n"
    if arguments.page:
        arguments.page.write_text(page)
    else:
        print(page)
    print(measured, *problems, sep="\n  ", file=sys.stderr)
    return 1 if problems else 0


def _row(name, want, ops):
    """Return a mechanism's line of the table, and what deviates from what is expected."""
    from opcheck.core.verdict import Verdict
    from tests.broken.judge import complaints, missed

    broken, right = ops[f"broken::{name}"], ops[f"right::{name}"]
    failures = [(case, item) for case in broken.cases for item in case.findings if item.verdict is Verdict.FAIL]
    caught: dict[str, list[str]] = {}
    for _, item in failures:
        tensors = caught.setdefault(item.check, [])
        tensors += [] if item.tensor in tensors else [item.tensor]
    said = next((i.detail for c, i in failures if want.among in c.id and want.says in f"{i.detail} {i.looks_like}"), "")
    reports, sentence = described(name)
    cells = (
        f"`{name}`",
        reports,
        sentence,
        "; ".join(f"{check} ({', '.join(tensors)})" for check, tensors in sorted(caught.items())) or "nothing",
        f"{len({case.id for case, _ in failures})} of {len(broken.cases)} cases",
        said if len(said) <= LONGEST else said[: LONGEST - 4].rsplit(" ", 1)[0] + " ...",
        f"{right.verdict}, {len(right.cases)} cases",
    )
    wrong = [f"broken::{name}: {missed(want, broken)}"] if missed(want, broken) else []
    wrong += [f"right::{name}: {line}" for line in (complaints(right) or right.problems)[:3]]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |", wrong


def described(name: str) -> tuple[str, str]:
    """Return a mechanism's public reports, `"K036, K039"` or none, and its sentence, from its module's first line."""
    line = (GALLERY / f"{name}.py").read_text().partition("\n")[0].strip('"')
    match = re.fullmatch(r"(?:(?P<reports>K\d+(?:, K\d+)*)|`broken::\w+`): (?P<sentence>.*)", line)
    if match is None:
        raise ValueError(f"{name}.py should begin with `broken::{name}` or public reports, and a sentence: {line}")
    return match["reports"] or "", match["sentence"][:1].upper() + match["sentence"][1:]


if __name__ == "__main__":
    sys.exit(main())
