"""Who catches what on a GPU: guard bands and poison against compute-sanitizer, in `benchmarks/cuda_broken/`.

`python benchmarks/observe_cuda.py --out FOLDER [--sanitize memcheck,...]` audits one case of each kernel twice, with
the checks and under the sanitizers, and prints a table. FOLDER keeps both reports and the sanitizers' own words.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "benchmarks" / "cuda_broken"
CHECKS = ("structure", "numerics", "determinism", "intact", "memory")
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FAULTS = ("out_of_bounds", "race", "unwritten")
LIMIT = 105  # seconds for all steps together, which run side by side


def case_of(op: str) -> str:
    """Return the one case on which an op is tried."""
    shape = "rows=64,cols=256" if op.endswith("race") else "rows=5,cols=129"
    return f"{op}[float32;{shape};normal;;;;0]@cuda"


TWINS = ("right", "wrong")
OPS = [f"{twin}::{language}_{fault}" for language in ("triton", "cuda") for fault in FAULTS for twin in TWINS]


def audit(out: Path, name: str, workers: int, *flags: str) -> subprocess.Popen:
    """Start an audit of all ops; its report goes to `<name>.json`, what it prints to `<name>.txt`."""
    cases = [item for op in OPS for item in ("--case", case_of(op))]
    command = [
        *(sys.executable, "-m", "opcheck", "audit", "--registry", str(HOME / "registry.toml"), "--backend", "cuda"),
        *("-n", str(workers), "--timeout", "90", *cases, *flags),
        *("--format", f"table={out / f'{name}.txt'}", "--format", f"json={out / f'{name}.json'}"),
    ]
    return start(command, out / f"{name}.err")


def raw(out: Path, tool: str, op: str) -> subprocess.Popen:
    """Start one run under a tool, for its own words."""
    command = [
        *("compute-sanitizer", "--tool", tool, "--target-processes", "application-only", "--strip-paths", "no"),
        *("--launch-timeout", "120", "--max-connections", "64", "--print-limit", "3", "--"),
        *(sys.executable, "-m", "opcheck.alone", "--module", f"cuda_broken.{op[7:].partition('_')[0]}_ops"),
        *("--case", case_of(op), "--answer", str(out / f"raw-{tool}.json")),
    ]
    return start(command, out / f"raw-{tool}.txt", PYTORCH_NO_CUDA_MEMORY_CACHING="1", TRITON_INTERPRET="0")


def start(command: list[str], said: Path, **variables: str) -> subprocess.Popen:
    """Start a command in this project's environment; what it prints goes to a file."""
    path = os.pathsep.join((str(ROOT), str(HOME)))
    with open(said, "wb") as file:
        return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path, **variables}, stdout=file,
                                stderr=file)  # fmt: skip


def findings(file: Path) -> dict[str, list[dict]]:
    """Return every finding of a report by op."""
    if not file.exists():
        return {}
    report = json.loads(file.read_text())
    return {op["op"]: [item for case in op["cases"] for item in case["findings"]] for op in report["ops"]}


def verdict(found: list[dict], check: str, tool: str = "") -> str:
    """Return the worst verdict of a check, or of a tool, in one word; `?` where there is none."""
    mine = [item["verdict"] for item in found if item["check"] == check and tool in ("", item["tensor"])]
    worst = next((word for word in ("FAIL", "INCONCLUSIVE", "PASS WITH LIMITATIONS", "PASS") if word in mine), "?")
    return {"PASS": "-", "PASS WITH LIMITATIONS": "limited"}.get(worst, worst)


def main() -> None:
    """Run everything side by side and print the table last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sanitize", default=",".join(TOOLS))
    options = parser.parse_args()
    out, tools = options.out.resolve(), options.sanitize.split(",")
    out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    sys.path[:0] = [str(ROOT), str(HOME)]
    from cuda_broken.cuda_ops import build

    print(f"built {build()} after {time.monotonic() - begun:.0f} s", flush=True)
    running = {
        "checks": audit(out, "checks", 4, *(word for name in CHECKS for word in ("--check", name))),
        "sanitize": audit(out, "sanitize", 10, "--sanitize", ",".join(tools)),
    }
    if shutil.which("compute-sanitizer"):
        wanted = {"memcheck": "out_of_bounds", "racecheck": "race", "initcheck": "unwritten", "synccheck": "race"}
        running |= {f"raw-{tool}": raw(out, tool, f"wrong::cuda_{fault}") for tool, fault in wanted.items()}
    for name, process in running.items():
        try:
            status = process.wait(max(1.0, LIMIT - (time.monotonic() - begun)))
        except subprocess.TimeoutExpired:
            process.terminate()
            status = "out of time"
        print(f"{name}: status {status} after {time.monotonic() - begun:.0f} s", flush=True)
    checks, sanitized = findings(out / "checks.json"), findings(out / "sanitize.json")
    for op in OPS:
        for item in (*checks.get(op, []), *sanitized.get(op, [])):
            if item["verdict"] != "PASS" or item["check"] == "memory":
                print(f"{op}  {item['verdict']} {item['check']} {item['tensor']}: {item['detail'][:260]}")
    for name in sorted(running):
        said = out / f"{name}.txt"
        if name.startswith("raw") and said.exists():
            print(f"== {name}", *said.read_text(errors="replace").splitlines()[:14], sep="\n")
        elif not (out / f"{name}.json").exists() and (out / f"{name}.err").exists():
            print(f"== {name}", *(out / f"{name}.err").read_text(errors="replace").splitlines()[-14:], sep="\n")
    print("\n" + " | ".join(("op", *CHECKS, *tools)))
    for op in OPS:
        row = [verdict(checks.get(op, []), name) for name in CHECKS]
        row += [verdict(sanitized.get(op, []), "sanitize", tool) for tool in tools]
        print(" | ".join((op, *row)))


if __name__ == "__main__":
    main()
