"""Shrink and reproduce the failures of the gallery of broken kernels, each by a script in a fresh process.

For each mechanism, on each of its triggering cases, every failure that `tests/broken/expected.py` names is shrunk and
its script is run alone; the same script with the right twin's name must exit with 0. Exits with 1 where one does not.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

REGISTRY = ROOT / "tests" / "broken" / "registry.toml"


def main() -> int:
    """Read the arguments, go through the mechanisms, print the figures; return the exit status."""
    from opcheck.session import Options, Session
    from tests.broken.expected import EXPECTED

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shrink-seconds", type=float, default=20.0)
    parser.add_argument("--first", action="store_true", help="only the first failure of each mechanism")
    parser.add_argument("mechanisms", nargs="*", help="all of them unless given")
    arguments = parser.parse_args()
    names = arguments.mechanisms or list(EXPECTED)
    started = time.perf_counter()
    rows = []
    options = Options(
        registry=REGISTRY, backend="cpu", budget=0.0, workers=1, ops=tuple(f"broken::{name}" for name in names)
    )
    with Session.open(options) as session, tempfile.TemporaryDirectory() as folder:
        plans = session.plan()
        for name in names:
            found = list(_failures(session, plans[f"broken::{name}"], EXPECTED[name]))
            for case, finding in found[: 1 if arguments.first else None]:
                rows.append(_reproduced(session, case, finding, arguments.shrink_seconds, Path(folder)))
                print(_line(rows[-1]), flush=True)
    return _told(rows, len(names), time.perf_counter() - started)


def _failures(session, plan, want):
    """Yield the expected failures of a mechanism, each on the first triggering case that shows it."""
    from opcheck.checks import all_checks
    from opcheck.repro.shrinking import audited, failures

    told = set()
    for part in want.wanted:
        case = next((item.case for item in plan.cases if part in item.case.id), None)
        for finding in failures(audited(session, case, tuple(all_checks()))) if case else ():
            key = (finding.check, finding.tensor)
            if key in want.fails and key not in told:
                told.add(key)
                yield case, finding


def _reproduced(session, case, finding, seconds, folder):
    from opcheck.core.shrink import elements
    from opcheck.repro.shrinking import smallest
    from opcheck.repro.writing import about, write

    started = time.perf_counter()
    found = smallest(session, case, finding, seconds)
    shrinking = time.perf_counter() - started
    written = write(session, about(session, found.shrunk.case, case, found.finding, bisect=False), folder)
    text = written.file.read_text()
    name = case.op.partition("::")[2]
    right = text.replace(f"broken::{name}", f"right::{name}").replace(
        f"torch.ops.broken.{name}", f"torch.ops.right.{name}"
    )
    written.file.write_text(right)
    twin = subprocess.run([sys.executable, str(written.file)], capture_output=True, text=True, check=False)
    return {
        "name": name,
        "pair": f"{finding.check} of {finding.tensor}",
        "before": case,
        "after": found.shrunk.case,
        "ratio": elements(found.shrunk.case) / elements(case) if elements(case) else None,
        "tried": found.shrunk.tried,
        "whole": found.shrunk.whole,
        "seconds": shrinking,
        "way": "opcheck"
        if not written.alone
        else "repaired"
        if "interpreter.install()" in text
        else "torch and triton",
        "shows": written.shows,
        "said": written.said,
        "twin": twin.returncode,
        "twin_said": (twin.stdout + twin.stderr)[-300:],
    }


def _line(row):
    state = "reproduced" if row["shows"] else f"NOT REPRODUCED ({row['said'][-200:]})"
    twin = "" if row["twin"] == 0 else f"; TWIN EXITS {row['twin']} ({row['twin_said']})"
    ratio = "" if row["ratio"] is None else f"{row['ratio']:.2g} of the elements, "
    return (
        f"{row['name']}: {row['pair']}: {row['after'].id}, {ratio}{row['tried']} runs in "
        f"{row['seconds']:.1f} s{'' if row['whole'] else ' (cut short)'}; {state} by {row['way']}{twin}"
    )


def _told(rows, mechanisms, seconds):
    ratios = [row["ratio"] for row in rows if row["ratio"] is not None] or [1.0]
    ways = Counter(row["way"] for row in rows)
    shown, right = sum(row["shows"] for row in rows), sum(row["twin"] == 0 for row in rows)
    print(
        f"{len(rows)} failures of {mechanisms} mechanisms in {seconds:.0f} s",
        f"{shown} scripts reproduce in a fresh process of their own, {right} exit with 0 for the right twin",
        f"by {', '.join(f'{way} {count}' for way, count in ways.items())}",
        f"shrunk to {statistics.median(ratios):.2g} of the elements in the median, {max(ratios):.2g} at most",
        f"{statistics.median(row['tried'] for row in rows):g} runs in the median",
        sep="; ",
    )
    return 0 if shown == right == len(rows) and statistics.median(ratios) <= 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())
