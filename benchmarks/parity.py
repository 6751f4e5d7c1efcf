"""The same cases on CUDA and on the interpreter, side by side.

On a machine with a GPU, keep what the kernels answer; on one without, run the same cases interpreted and compare:

    python benchmarks/parity.py dump answers.npz
    TRITON_INTERPRET=1 python benchmarks/parity.py compare answers.npz

For each op, element type and tensor the table gives the share of equal bit patterns and the largest difference over the
threshold of the case's own gate: above 1 the two backends would not be accepted for each other. Autotuned kernels
launch their first configuration on both.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from opcheck.backends import interpreter  # noqa: E402
from opcheck.backends.configs import only_config  # noqa: E402
from opcheck.checks import limits_by_check  # noqa: E402
from opcheck.checks.gate import GateLimits, threshold_of  # noqa: E402
from opcheck.core.case import Case  # noqa: E402
from opcheck.core.cases import plan_cases  # noqa: E402
from opcheck.core.laws import siblings_needed  # noqa: E402
from opcheck.core.measure import dtype_name, measure  # noqa: E402
from opcheck.core.outcome import Siblings  # noqa: E402
from opcheck.core.outside import outside  # noqa: E402
from opcheck.declared import load  # noqa: E402
from opcheck.run.execute import Executor  # noqa: E402
from opcheck.run.modules import import_modules  # noqa: E402
from opcheck.run.roles import run_role  # noqa: E402


def cases(policy, level):
    """Yield the contract and case of everything that the interpreter runs at a level."""
    for name in sorted(policy.ops):
        contract = policy.ops[name]
        for item in plan_cases(contract, level=level, backend="cpu", budget=0.0).cases:
            if not outside(contract, item.case):
                yield contract, item.case


def dump(file, policy, level):
    """Run every case's target on CUDA and keep the bits of its outputs and gradients."""
    from opcheck.registry import spec

    device = torch.device("cuda")
    kept, index = {}, []
    for _, case in cases(policy, level):
        with only_config(0):
            run = run_role(spec(case.op), case, "target", device)
        for name, value in run.tensors.items():
            key = f"a{len(index)}"
            kept[key] = value.detach().contiguous().reshape(-1).view(torch.uint8).cpu().numpy()
            index.append([case.id, name, dtype_name(value.dtype), list(value.shape), key])
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "index": index}
    np.savez_compressed(file, about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8), **kept)
    print(f"kept {len(index)} tensors of {about['device']}, torch {about['torch']}")


def compare(file, policy):
    """Run the same cases interpreted and print both side by side."""
    from opcheck.registry import spec

    repair = interpreter.install()
    stored = np.load(file)
    about = json.loads(stored["about"].tobytes())
    device = torch.device("cpu")
    runs, rows = {}, defaultdict(list)
    for case_id, name, dtype, shape, key in about["index"]:
        case = Case.parse(case_id)
        contract = policy.ops[case.op]
        if case_id not in runs:
            runs.clear()
            op = spec(case.op)
            with only_config(0):
                runs[case_id] = {role: run_role(op, case, role, device) for role in ("golden", "reference", "target")}
        trio = [runs[case_id][role].tensors[name] for role in ("target", "reference", "golden")]
        gpu = torch.empty(shape, dtype=getattr(torch, dtype))
        gpu.view(-1).view(torch.uint8).copy_(torch.from_numpy(stored[key].copy()))
        plain = measure(name, *trio, gradient=name.startswith("grad "), inputs_finite=runs[case_id]["golden"].finite)
        drawn = None
        if count := siblings_needed(plain):
            executor = Executor(spec(case.op), contract, device, lambda *_: None)
            answer = executor.execute(case, [Siblings(count=count)])[Siblings(count=count)]
            drawn = answer.evidence.find(name)
        allowed = threshold_of(plain, drawn, GateLimits()).value
        equal = gpu.reshape(-1).view(torch.uint8).eq(trio[0].detach().contiguous().reshape(-1).view(torch.uint8))
        same = float(equal.reshape(gpu.numel(), -1).all(dim=1).double().mean()) if gpu.numel() else 1.0
        left, right = gpu.double(), trio[0].detach().double()
        places = bool((left.isfinite() == right.isfinite()).all() and (left.isnan() == right.isnan()).all())
        both = left.isfinite() & right.isfinite()
        apart = float((left - right)[both].abs().max()) if bool(both.any()) else 0.0
        ratio = apart / allowed if allowed else float("inf") if apart else 0.0
        rows[case.op, dtype, name].append((same, ratio, places, case_id))
    print(f"GPU: {about['device']}, torch {about['torch']}; here: torch {torch.__version__}, {repair}")
    table, beyond = [], []
    for (op, dtype, name), found in rows.items():
        worst = max(found, key=lambda item: item[1])
        share = sum(item[0] for item in found) / len(found)
        table.append((op, dtype, name, len(found), f"{share:.1%}", f"{worst[1]:.3f}", sum(not f[2] for f in found)))
        beyond += [(item[3], name, f"{item[1]:.3g}", item[2]) for item in found if item[1] > 1 or not item[2]]
    headers = ("op", "dtype", "tensor", "cases", "equal bits", "worst difference / threshold", "NaN or Inf differs")
    print(tabulate(table, headers=headers))
    print(f"\nbeyond the gate: {len(beyond)}")
    for line in beyond:
        print("  ", *line)


def main():
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("dump", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--level", default="standard")
    arguments = parser.parse_args()
    policy = load(ROOT / "registry.toml", limits_by_check())
    if arguments.what == "compare":
        interpreter.install()
    failures = import_modules(policy.modules)
    for sentence in failures.values():
        print(sentence)
    if arguments.what == "dump":
        dump(arguments.file, policy, arguments.level)
    else:
        compare(arguments.file, policy)


if __name__ == "__main__":
    main()
