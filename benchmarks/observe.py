"""What observing costs: a guarded run of the target, one with every access looked at, and a guarded one whose kernels
carry the marks of `audit --coverage`, each over the bare run.

    TRITON_INTERPRET=1 python benchmarks/observe.py [--level quick] [--repeats 3] [OP ...]

The runs of one case alternate, and the fastest of each kind counts. The ratio of an op is that of its cases' sums.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial
from pathlib import Path

os.environ.setdefault("TRITON_INTERPRET", "1")

import torch
from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from opcheck.backends import interpreter  # noqa: E402
from opcheck.backends.configs import configured  # noqa: E402
from opcheck.checks import limits_by_check  # noqa: E402
from opcheck.core.cases import plan_cases  # noqa: E402
from opcheck.core.outside import outside  # noqa: E402
from opcheck.declared import load  # noqa: E402
from opcheck.run.modules import import_modules  # noqa: E402
from opcheck.run.observe import Observation  # noqa: E402
from opcheck.run.roles import run_role  # noqa: E402


def main() -> int:
    """Time each op and print the table."""
    from opcheck.registry import spec

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", default="quick")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("ops", nargs="*", help="all of them unless given")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    interpreter.install()
    from opcheck.backends.interpreter import memory
    from opcheck.backends.interpreter.coverage import Recorder

    policy = load(ROOT / "registry.toml", limits_by_check())
    import_modules(policy.modules)
    device = torch.device("cpu")
    recorder = Recorder()
    rows: list[tuple] = []
    whole = [0.0] * 4
    for name in arguments.ops or sorted(policy.ops):
        contract, op = policy.ops[name], spec(name)
        planned = plan_cases(contract, level=arguments.level, backend="cpu", budget=0.0).cases
        totals, accesses = [0.0] * 4, 0
        for case in (item.case for item in planned if not outside(contract, item.case)):
            best = [float("inf")] * 4
            with configured(case.variant):
                run_role(op, case, "target", device)  # whatever is done once
                with recorder.recording():
                    run_role(op, case, "target", device)
                for _ in range(arguments.repeats):
                    with memory.observing(None):
                        best[0] = min(best[0], _seconds(partial(run_role, op, case, "target", device)))
                    best[1] = min(best[1], _seconds(partial(run_role, op, case, "target", device)))
                    observation = Observation(op, contract, case, device)
                    best[2] = min(best[2], _seconds(observation.run))
                    with recorder.recording():
                        best[3] = min(best[3], _seconds(partial(run_role, op, case, "target", device)))
            accesses += observation.found().accesses
            totals = [total + seconds for total, seconds in zip(totals, best, strict=True)]
        rows.append((name, len(planned), accesses, totals[0], *(part / totals[0] for part in totals[1:])))
        whole = [before + seconds for before, seconds in zip(whole, totals, strict=True)]
    rows.append(
        ("all", *(sum(row[at] for row in rows) for at in (1, 2)), whole[0], *(part / whole[0] for part in whole[1:]))
    )
    print(
        tabulate(rows, headers=("op", "cases", "accesses", "bare s", "guarded", "observed", "marked"), floatfmt=".2f")
    )
    return 0


def _seconds(run) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
