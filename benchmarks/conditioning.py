"""How often a sum is judged rightly where the reference says nothing: false alarms and misses by condition number.

    python benchmarks/conditioning.py [--seeds 20] [--rows 64] [--length 1024] [--condition 1e6 ...] [KERNEL ...]

The kernels are sums in PyTorch, of which is known what their errors are: right ones in several orders, and wrong ones
by a known bias, accumulator or formula. Each verdict is the audit's own, of one case under the check `numerics`.
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch
from tabulate import tabulate
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from opcheck import Case, Sample  # noqa: E402
from opcheck.auditor import audit_case  # noqa: E402
from opcheck.checks import all_checks  # noqa: E402
from opcheck.checks.protocol import Subject  # noqa: E402
from opcheck.core.case import Dims  # noqa: E402
from opcheck.core.policy import Contract, Policy  # noqa: E402
from opcheck.core.report import CaseReport  # noqa: E402
from opcheck.core.spec import Argument, OpSpec  # noqa: E402
from opcheck.core.verdict import Verdict  # noqa: E402
from opcheck.run.execute import Executor  # noqa: E402

OP = "sums::sum"


def in_parts(x: Tensor, parts: int = 8) -> Tensor:
    """Sum x `[*S, T]` in parts, and then the parts, as split-K does."""
    return x.unflatten(-1, (min(parts, x.shape[-1]), -1)).sum(-1).sum(-1)


def in_lanes(x: Tensor, lanes: int = 32) -> Tensor:
    """Sum x `[*S, T]` in lanes, each one after the other, and then the lanes in a tree."""
    padded = torch.nn.functional.pad(x, (0, -x.shape[-1] % lanes)).unflatten(-1, (-1, lanes))
    total = functools.reduce(torch.add, padded.unbind(-2))
    while total.shape[-1] > 1:
        total = total[..., ::2] + total[..., 1::2]
    return total[..., 0]


def one_by_one(x: Tensor) -> Tensor:
    """Sum x `[*S, T]` one after the other."""
    return functools.reduce(torch.add, x.unbind(-1))


def in_random_order(x: Tensor) -> Tensor:
    """Sum 32 parts of x `[*S, T]` in another order at each call, as atomics do."""
    parts = x.unflatten(-1, (min(32, x.shape[-1]), -1)).sum(-1)
    return one_by_one(parts[..., torch.randperm(parts.shape[-1])])


def upwards(x: Tensor, share: float, ulps: int = 1) -> Tensor:
    """Sum x in parts, a share of its terms moved up by some ulps."""
    above = x
    for _ in range(ulps):
        above = torch.nextafter(above, torch.tensor(math.inf))
    return in_parts(torch.where(torch.rand(x.shape) < share, above, x))


def accumulated_in(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Sum x `[*S, T]` one after the other, each partial sum rounded to an element type."""
    return functools.reduce(lambda total, term: (total + term).to(dtype).float(), x.unbind(-1))


def without_one_term(x: Tensor) -> Tensor:
    """Sum x `[*S, T]` one after the other, one term of the first sum left out."""
    kept = torch.ones_like(x)
    kept.view(-1)[x.shape[-1] - 1] = 0.0
    return one_by_one(x * kept)


RIGHT: dict[str, Callable[[Tensor], Tensor]] = {
    "in parts": in_parts,
    "in lanes": in_lanes,
    "one by one": one_by_one,
    "atomics": in_random_order,
    "each term times 1 + ulp": lambda x: in_parts(x * (1 + 2.0**-23)),
}
WRONG: dict[str, Callable[[Tensor], Tensor]] = {
    "0.1 of the terms up 1 ulp": lambda x: upwards(x, 0.1),
    "0.25 of the terms up 1 ulp": lambda x: upwards(x, 0.25),
    "each term up 1 ulp": lambda x: upwards(x, 1.1),
    "each term up 4 ulp": lambda x: upwards(x, 1.1, 4),
    "terms in float16": lambda x: in_parts(x.half()).float(),
    "terms in bfloat16": lambda x: in_parts(x.bfloat16()).float(),
    "partial sums in float16": lambda x: accumulated_in(x, torch.float16),
    "partial sums in bfloat16": lambda x: accumulated_in(x, torch.bfloat16),
    "one by one, each term up 1 ulp": lambda x: one_by_one(torch.nextafter(x, torch.tensor(math.inf))),
    "one by one, one term is missing": without_one_term,
    "half of it": lambda x: 0.5 * in_parts(x),
    "zeros": lambda x: 0.0 * in_parts(x),
    "the last term is missing": lambda x: in_parts(torch.cat([x[..., :-1], 0 * x[..., -1:]], -1)),
}


def differentiable(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Give a sum over the last axis its right backward."""

    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return function(x)

        @staticmethod
        def backward(ctx, grad):
            return grad[..., None].expand(ctx.shape).contiguous()

    return Sum.apply


def samples_of(condition: float) -> Callable[[Case], Sample]:
    """Draw terms that cancel in pairs, but for one; `sum |t| / |sum t|` is about `condition`."""

    def samples(case: Case) -> Sample:
        drawn = case.tensor("rows", "cols", name="x")
        half = drawn.shape[1] // 2
        x = torch.cat([drawn[:, :half], -drawn[:, :half]], 1)
        rest = 2 * drawn[:, :half].abs().sum(1) / condition * (0.5 + drawn[:, -1].abs()) * drawn[:, -1].sign()
        x[:, 0] += rest
        return Sample(x[:, torch.randperm(x.shape[1], generator=case.generator)])

    return samples


def verdict(function: Callable[[Tensor], Tensor], condition: float, dims: Dims, seed: int, *, terms: bool) -> Verdict:
    """Return what the audit of one sum on one case comes to."""
    return report_of(function, condition, dims, seed, terms=terms).verdict


def report_of(
    function: Callable[[Tensor], Tensor], condition: float, dims: Dims, seed: int, *, terms: bool
) -> CaseReport:
    """Audit one sum on one case."""
    spec = OpSpec(
        name=OP, target=differentiable(function), reference=lambda x: x.sum(-1), golden=lambda x: x.sum(-1),
        samples=samples_of(condition), arguments=(Argument(name="x", kind="tensor"),),
        terms=(lambda x: x) if terms else None,
    )  # fmt: skip
    contract = Contract(name=OP, kind="reduction", dtypes=("float32",), dims=("rows", "cols"), reduces=("cols",))
    case = Case(op=OP, dtype="float32", dims=dims, seed=seed)
    checks = {name: check for name, check in all_checks().items() if name in ("structure", "numerics")}
    executor = Executor(spec, contract, torch.device("cpu"), lambda *_: None)
    subject = Subject(contract=contract, case=case, terms=terms)
    return audit_case(subject, checks, Policy(ops={OP: contract}), executor)


def main() -> int:
    """Print the table: of the seeds, how many ended in each verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--condition", type=float, nargs="*", default=[1.0, 1e2, 1e4, 1e6, 1e8])
    parser.add_argument("--without-terms", action="store_true")
    parser.add_argument("kernels", nargs="*")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dims = Dims(rows=arguments.rows, cols=arguments.length)
    rows = []
    for name, function in {**RIGHT, **WRONG}.items():
        if arguments.kernels and name not in arguments.kernels:
            continue
        row = [name, "right" if name in RIGHT else "wrong"]
        for condition in arguments.condition:
            found = Counter(
                verdict(function, condition, dims, seed, terms=not arguments.without_terms)
                for seed in range(arguments.seeds)
            )
            row.append(" / ".join(str(found[item]) for item in Verdict))
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    headers = ("sum", "is", *(f"{condition:.0e}" for condition in arguments.condition))
    order = " / ".join(str(item) for item in Verdict)
    print(f"{arguments.rows} sums of {arguments.length} terms, {arguments.seeds} seeds: {order}")
    print(tabulate(rows, headers=headers, tablefmt="github"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
