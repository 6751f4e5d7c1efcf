"""The reference in FP32, in two legitimate orders of its declared reductions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from opcheck.core.case import Case
from opcheck.core.measure import measure_oracle
from opcheck.core.outcome import OracleErrors, Role
from opcheck.core.policy import WIDE, Contract
from opcheck.core.spec import OpSpec
from opcheck.run.inputs import seeded
from opcheck.run.pooling import pooled
from opcheck.run.roles import Run, run_role

# Relative: golden in both orders agrees to FP64 noise, which is 1e-9 of a gradient that cancels to 1e-7 of its terms,
# or the axes were guessed wrong, and then most elements differ altogether.
ALIGNED = 1e-6
STEP, MUCH = 100.0, 0.25  # noise moves many elements by more than 1/100 of what it moves any, a step moves few
NEGLIGIBLE = 1e-3  # of the reference's error: where golden is 0 but for FP64 noise, its orders agree in nothing


def two_orders(spec: OpSpec, contract: Contract, case: Case, device: torch.device) -> OracleErrors:
    """Return how far the reference in FP32 is from golden, over its natural order and a permuted one.

    The declared reduction dimensions of all inputs are permuted alike; outputs and gradients that carry such a
    dimension come back permuted and are put back in order. Which axes an output carries is checked against golden in
    both orders, never assumed. A tensor that cannot be aligned has no entry.
    """
    permute = _permutation(contract, case)
    precision = torch.float64 if case.dtype == "float64" else torch.float32
    golden = run_role(spec, case, "golden", device)
    natural = run_role(spec, case, "reference", device, precision=precision)
    draws = [measure_oracle(name, value, golden.tensors[name])
             for name, value in natural.tensors.items() if name in golden.tensors]  # fmt: skip
    if not permute:
        return OracleErrors(tensors=(), draws=0)
    carried = _carried(golden, permute)
    shuffled_golden = run_role(spec, case, "golden", device, permute=permute, permute_outputs=carried)
    shuffled = run_role(spec, case, "reference", device, precision=precision, permute=permute, permute_outputs=carried)
    errors = {item.tensor: item.reference_error for item in draws if item is not None}
    aligned = []
    for name, value in shuffled.tensors.items():
        truth, moved = golden.tensors.get(name), shuffled_golden.tensors.get(name)
        axes = _axes_of(name, golden, carried, permute)
        negligible = NEGLIGIBLE * errors.get(name, 0.0)
        if truth is None or moved is None or not _same(_put_back(moved, axes), truth, negligible):
            continue
        aligned.append(name)
        draws.append(measure_oracle(name, _put_back(value, axes), truth))
    kept = (item for item in draws if item is not None and item.tensor in aligned)
    return OracleErrors(tensors=pooled(kept), draws=2)


def moved(spec: OpSpec, contract: Contract, case: Case, device: torch.device, tensor: str) -> dict[Role, float]:
    """Return by how much another order of the declared reductions changes a tensor of reference and target.

    The reference runs in its own element types. NaN where there is no other order, or where the two cannot be aligned.
    """
    permute = _permutation(contract, case)
    unknown: dict[Role, float] = {"reference": math.nan, "target": math.nan}
    if not permute:
        return unknown
    golden = run_role(spec, case, "golden", device)
    carried = _carried(golden, permute)
    shuffled = run_role(spec, case, "golden", device, permute=permute, permute_outputs=carried)
    axes = _axes_of(tensor, golden, carried, permute)
    if tensor not in shuffled.tensors or not _same(
        _put_back(shuffled.tensors[tensor], axes), golden.tensors[tensor], 0.0
    ):
        return unknown
    found = dict(unknown)
    for role in found:
        natural = run_role(spec, case, role, device).tensors[tensor].detach().double()
        other = run_role(spec, case, role, device, permute=permute, permute_outputs=carried).tensors[tensor].detach()
        change = (_put_back(other.double(), axes) - natural).abs()
        change = change[change.isfinite()]
        found[role] = float(change.max()) if change.numel() else math.nan
    return found


def golden_orders(
    spec: OpSpec, contract: Contract, case: Case, device: torch.device
) -> dict[str, tuple[Tensor, Tensor | None]]:
    """Return each tensor of golden in its natural order of the declared reductions and in another one, put in order.

    The other one's inputs are off by one ulp of FP64 where that moves much of the tensor: sums of float32 numbers and
    of their squares are often exact in FP64, and what is lost after them does not show in another order. Narrow types
    do without, whose elements lie on steps of golden more often.

    None for the other where it cannot be put in order. Whether it can is asked where golden does not cancel: on the
    same inputs moved to mean 0 and variance 1, where both orders must agree; empty where nothing is reduced.
    """
    permute = _permutation(contract, case)
    if not permute:
        return {}
    benign = _pair(replace(spec, golden=_changed(spec.golden, _standard)), case, device, permute)
    pairs = _pair(spec, case, device, permute)
    nudged = _pair(spec, case, device, permute, nudge=True) if case.dtype in WIDE else {}
    return {
        name: (truth, _larger(truth, other, nudged.get(name)) if name in benign and _agree(*benign[name]) else None)
        for name, (truth, other) in pairs.items()
    }


Axes = tuple[tuple[int, Tensor], ...]


def _pair(
    spec: OpSpec, case: Case, device: torch.device, permute: dict[str, Tensor], *, nudge: bool = False
) -> dict[str, tuple[Tensor, Tensor]]:
    golden = run_role(spec, case, "golden", device)
    carried = _carried(golden, permute)
    if nudge:
        spec = replace(spec, golden=_changed(spec.golden, _nudged))
    other = run_role(spec, case, "golden", device, permute=permute, permute_outputs=carried)
    return {
        name: (value.detach(), _put_back(other.tensors[name].detach(), _axes_of(name, golden, carried, permute)))
        for name, value in golden.tensors.items()
        if name in other.tensors and value.dtype.is_floating_point
    }


def _agree(natural: Tensor, other: Tensor) -> bool:
    return bool((natural.isfinite() & other.isfinite()).any()) and _same(other, natural, 0.0)


def _larger(natural: Tensor, other: Tensor, nudged: tuple[Tensor, Tensor] | None) -> Tensor:
    """Return what the nudge gave instead, if it moves at least a quarter of the elements alike: noise, not a step."""
    if nudged is None:
        return other
    distance = (nudged[1] - natural).abs()
    distance = distance[distance.isfinite()]
    if not distance.numel() or not float(distance.max()):
        return other
    moved = (distance > distance.max() / STEP).double().mean()
    return nudged[1] if float(moved) >= MUCH else other


def _changed(golden: Callable[..., Any], change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """Return a golden whose floating-point arguments `[*S]` are changed first."""

    def apply(value: Any) -> Any:
        return change(value) if isinstance(value, Tensor) and value.dtype.is_floating_point else value

    def called(*args: Any, **kwargs: Any) -> Any:
        return golden(*tree_map(apply, args), **tree_map(apply, kwargs))

    return called


def _standard(value: Tensor) -> Tensor:
    fixed = value.detach()
    return (value - fixed.mean()) / (float(fixed.std()) or 1.0) if value.numel() > 1 else value


def _nudged(value: Tensor) -> Tensor:
    steps = torch.randint(-1, 2, tuple(value.shape), generator=seeded("nudge")).to(value)
    return value * (1 + steps * 2.0**-52)


def _permutation(contract: Contract, case: Case) -> dict[str, Tensor]:
    return {
        name: torch.randperm(case.dims[name], generator=seeded(f"{case.id}|{name}"))
        for name in contract.reduces
        if name in case.dims
    }


def _carried(golden: Run, permute: dict[str, Tensor]) -> dict[str, Axes]:
    """Guess which axes of each output carry a permuted dimension: those of an input of the same shape."""
    found: dict[str, Axes] = {}
    for output, value in golden.outputs.items():
        for name, axes in golden.axes.items():
            gradient = golden.gradients.get(f"grad {name}")
            if gradient is not None and gradient.shape == value.shape:
                found[output] = tuple((axis, permute[dim]) for axis, dim in enumerate(axes) if dim in permute)
                break
    return found


def _axes_of(name: str, golden: Run, carried: dict[str, Axes], permute: dict[str, Tensor]) -> Axes:
    if name in carried:
        return carried[name]
    axes = golden.axes.get(name.removeprefix("grad "), ())
    return tuple((axis, permute[dim]) for axis, dim in enumerate(axes) if dim in permute)


def _put_back(value: Tensor, axes: Axes) -> Tensor:
    for axis, order in axes:
        value = value.index_select(axis, torch.argsort(order).to(value.device))
    return value


def _same(left: Tensor, right: Tensor, negligible: float) -> bool:
    if left.shape != right.shape:
        return False
    finite = left.isfinite() & right.isfinite()
    if not bool(finite.any()):
        return True
    scale = right[finite].abs().max()
    return bool((left[finite] - right[finite]).abs().max() <= max(ALIGNED * float(scale), negligible))
