"""Audit the registry under many seeds and count what is not right: `python benchmarks/false_alarms.py --seeds 30`.

Every kernel of this repository is taken to be right, so each FAIL or INCONCLUSIVE is a false alarm (or a bug found).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def main():
    """Read the arguments, audit, print one line a seed and the sum."""
    from opcheck.core.verdict import Verdict
    from opcheck.session import Options, audit

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--level", default="quick")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("-n", dest="workers", type=int, default=0)
    parser.add_argument("ops", nargs="*")
    arguments = parser.parse_args()
    total = Counter()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        started = time.perf_counter()
        report = audit(
            Options(
                ops=tuple(arguments.ops), level=arguments.level, backend=arguments.backend, seed=seed,
                workers=arguments.workers,
            )
        )  # fmt: skip
        cases = [case for op in report.ops for case in op.cases]
        findings = [finding for case in cases for finding in case.findings]
        wrong = [
            (case.id, finding)
            for case in cases
            for finding in case.findings
            if finding.verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE)
        ]
        total["tensors"] += sum(len(case.tensors) for case in cases)
        total["findings"] += len(findings)
        total["alarms"] += len(wrong)
        total["limitations"] += sum(finding.verdict is Verdict.PASS_WITH_LIMITATIONS for finding in findings)
        print(
            f"seed {seed}: {len(cases)} cases, {len(wrong)} alarms, {time.perf_counter() - started:.0f} s", flush=True
        )
        for case_id, finding in wrong:
            print(f"  {finding.verdict} {finding.check} {case_id} {finding.tensor}: {finding.detail}", flush=True)
    print(
        f"{arguments.seeds} seeds at level {arguments.level}: {total['tensors']} tensors compared, "
        f"{total['findings']} findings, {total['limitations']} limitations, {total['alarms']} alarms"
    )


if __name__ == "__main__":
    main()
