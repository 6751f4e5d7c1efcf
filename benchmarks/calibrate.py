"""Measure how the laws treat right kernels and planted faults, so that every constant stands before a table.

    python benchmarks/calibrate.py                       about 6 minutes on one CPU core, 3 on a GPU with 16
    python benchmarks/calibrate.py --quick               20 seeds
    python benchmarks/calibrate.py --challenge           the constants at other values too
    python benchmarks/calibrate.py --json calibration.json

The exit status is 1 where a right kernel was failed, or a fault beyond the printed detection limit passed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from benchmarks.calibration import table
from benchmarks.calibration.ops import ops_for
from benchmarks.calibration.runner import Cell, cells, run
from benchmarks.calibration.settings import STANDING, alternatives
from benchmarks.calibration.tally import Tally

OTHER_EVERY = 3  # one cell in so many is judged under the other constants too
QUICK_STRIDE = 7  # prime to the 4 or 5 families and the 3 element types, so that all of them are met


def main(arguments: list[str] | None = None) -> int:
    """Run the calibration and print its tables."""
    options = _options(arguments)
    backend = options.device
    if backend == "auto":
        backend = "cuda" if torch.cuda.is_available() else "cpu"
    seeds = options.seeds or (20 if options.quick else 200)
    jobs = options.jobs or (min(12, os.cpu_count() or 1) if backend == "cuda" else 1)
    started = time.perf_counter()
    stride = QUICK_STRIDE if options.quick else 1
    tally = calibrate(seeds, backend, jobs=jobs, challenge=options.challenge, only=options.only, stride=stride)
    machine = torch.cuda.get_device_name() if backend == "cuda" else f"{platform.machine()}, {os.cpu_count()} cores"
    spent = time.perf_counter() - started
    print(f"torch {torch.__version__}, {backend} ({machine}), {seeds} seeds, {jobs} jobs, {spent:.0f} s\n")
    print(table.text(tally))
    if options.json:
        head = {"torch": torch.__version__, "backend": backend, "machine": machine, "seeds": seeds}
        Path(options.json).write_text(json.dumps({**head, **table.data(tally)}, allow_nan=False, sort_keys=True))
    missed = sum(item.above_missed for key, item in tally.faults.items() if key.setting == STANDING)
    return int(missed > 0 or any(key.setting == STANDING for key in tally.alarms))


def calibrate(
    seeds: int, backend: str, *, jobs: int = 1, challenge: bool = False, only: str = "", stride: int = 1
) -> Tally:
    """Run every `stride`-th cell; `only` keeps the ops whose name contains it."""
    kept = range(0, len(_cells(seeds, backend, only)), stride)
    tally = Tally()
    # Big cells stand together in the list: shares that stride through it are even.
    shares = [(kept[at :: 8 * jobs], seeds, backend, challenge, only) for at in range(min(8 * jobs, len(kept)))]
    if jobs == 1:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            for share in shares:
                tally.add(_share(share))
        finally:
            torch.set_num_threads(threads)
        return tally
    with multiprocessing.get_context("spawn").Pool(jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for part in pool.imap(_share, shares):
            tally.add(part)
    return tally


def _share(share: tuple[range, int, str, bool, str]) -> Tally:
    which, seeds, backend, challenge, only = share
    settings = alternatives() if challenge else ()
    everything = _cells(seeds, backend, only)
    tally = Tally()
    for at in which:
        tally.add(run(everything[at], settings if at % OTHER_EVERY == 0 else ()))
    return tally


def _cells(seeds: int, backend: str, only: str) -> list[Cell]:
    return list(cells(tuple(op for op in ops_for(backend) if only in op.name), seeds, backend))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--seeds", type=int, default=0, help="default 200")
    parser.add_argument("--quick", action="store_true", help="20 seeds")
    parser.add_argument("--challenge", action="store_true", help="judge a part under other constants too")
    parser.add_argument("--jobs", type=int, default=0, help="worker processes; default 1 on a CPU, 12 on a GPU")
    parser.add_argument("--only", default="", metavar="OP", help="only the ops whose name contains OP")
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
