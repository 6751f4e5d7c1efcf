"""Time an audit that is answered from evidence: `python benchmarks/evidence.py [arguments of opcheck audit]`.

Audit once before, with the same arguments, so that there is evidence; an audit that has to run is not timed.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

RUNS = 10
HEAVY = ("torch", "triton", "numpy", "ml_dtypes", "opcheck.session")


def main() -> int:
    call = [sys.executable, "-X", "importtime", "-m", "opcheck", "audit", *(sys.argv[1:] or ["--all"])]
    done = subprocess.run(call, capture_output=True, text=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    if heavy := [name for name in HEAVY if name in imported]:
        print(f"it was not answered from evidence ({', '.join(heavy)} imported); now there may be some: call it again")
        return 1
    call = [word for word in call if word not in ("-X", "importtime")]
    wall, cpu = [], []
    for _ in range(RUNS):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(call, capture_output=True)
        wall.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(done.stdout.splitlines()[-1])
    print(f"whole process, best of {RUNS}: {min(wall):.3f} s, of which {min(cpu):.3f} s of one core")
    print(f"{len(imported)} modules imported, none of {', '.join(HEAVY)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
