"""What an op of the calibration is: inputs, a golden, references, right kernels and faulty ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from opcheck.core.policy import Kind, Overflow
from opcheck.run.inputs import seeded
from opcheck.run.values import fill

Tensors = dict[str, Tensor]
Kernel = Callable[[Tensors, Tensor], Tensors]  # inputs and upstream gradient -> "out" and "grad <input>"
Forward = Callable[..., Tensor]
OUTLIER = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One op, every tensor with a leading axis `[seeds, ...]`.

    Attributes:
        inputs: Name and dimension names of each floating-point input; the family of values fills the first.
        golden: Differentiable, called with the FP64 inputs in order.
        references, targets: Right kernels.
        borderline: Kernels that lose accuracy where their author may not know it; printed, never counted as alarms.
        faults: Kernels with a mistake inside, by the name of the mistake.
        shapes: Sizes by dimension name.
        coarse: Kernels that round intermediate results to a narrow element type, each with the references that do so
            too: beside any other it is less accurate by design.
        zero_mean: Targets that are right only where the values have mean zero (one-pass variances).
        cast: Element type of the output where it differs from that of the inputs.
    """

    name: str
    kind: Kind
    inputs: Mapping[str, tuple[str, ...]]
    golden: Forward
    references: Mapping[str, Kernel]
    targets: Mapping[str, Kernel]
    borderline: Mapping[str, Kernel] = field(default_factory=dict)
    faults: Mapping[str, Kernel] = field(default_factory=dict)
    shapes: tuple[Mapping[str, int], ...] = ()
    families: tuple[str, ...] = ("normal", "large_mean", "outlier_row", "outlier_column")
    dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")
    coarse: Mapping[str, frozenset[str]] = field(default_factory=dict)
    zero_mean: frozenset[str] = frozenset()
    overflow: Overflow = "ieee"
    cast: str = ""


def draw(op: Op, sizes: Mapping[str, int], dtype: str, values: str, seed: int, count: int) -> Tensors:
    """Draw `count` samples of an op's inputs, the same on every machine."""
    found = {}
    for name, dims in op.inputs.items():
        shape = tuple(sizes[dim] for dim in dims)
        generator = seeded(f"{op.name}|{name}|{sorted(sizes.items())}|{values}|{seed}")
        x = torch.randn((count, *shape), generator=generator)
        if not found:
            x = _filled(x, values, dtype, generator)
        elif values == "extreme_logits":
            x = x.clamp(-3, 3)
        found[name] = x.to(getattr(torch, dtype))
    return found


def _filled(x: Tensor, values: str, dtype: str, generator: torch.Generator) -> Tensor:
    at = torch.arange(x.shape[0])
    if values == "outlier_row":
        x[at, torch.randint(x.shape[1], (x.shape[0],), generator=generator)] *= OUTLIER
        return x
    if values == "outlier_column":
        x.movedim(-1, 1)[at, torch.randint(x.shape[-1], (x.shape[0],), generator=generator)] *= OUTLIER
        return x
    return fill(values, x, dtype)


def differentiable(forward: Forward) -> Kernel:
    """Return the kernel whose backward is autograd's."""

    def run(inputs: Tensors, dy: Tensor) -> Tensors:
        leaves = {name: value.detach().requires_grad_() for name, value in inputs.items()}
        out = forward(*leaves.values())
        if not out.requires_grad:
            return {"out": out}
        found = torch.autograd.grad(out, list(leaves.values()), dy.to(out.dtype))
        return {"out": out.detach(), **{f"grad {name}": item for name, item in zip(leaves, found, strict=True)}}

    return run


def rounded(forward: Forward) -> Kernel:
    """Return the careful kernel: FP32 inside, one rounding of each result to the inputs' element type."""

    def wide(*inputs: Tensor) -> Tensor:
        return forward(*(value.float() for value in inputs)).to(inputs[0].dtype)

    return differentiable(wide)


def each(forward: Forward) -> Kernel:
    """Return the kernel that calls `forward` once per seed, for aten functions that share a weight over the batch."""

    def run(inputs: Tensors, dy: Tensor) -> Tensors:
        count = next(iter(inputs.values())).shape[0]
        kernel = differentiable(forward)
        single = [kernel({name: value[at] for name, value in inputs.items()}, dy[at]) for at in range(count)]
        return {name: torch.stack([item[name] for item in single]) for name in single[0]}

    return run


def padded(x: Tensor, multiple: int, value: float = 0.0) -> Tensor:
    """Return `[..., n]` as `[..., ceil(n / multiple), multiple]`, filled up with `value`."""
    short = -x.shape[-1] % multiple
    return torch.nn.functional.pad(x, (0, short), value=value).unflatten(-1, (-1, multiple))


LOG2E = math.log2(math.e)


def exp_by_exp2(x: Tensor) -> Tensor:
    """Return `exp(x)` as GPU kernels compute it, `2^(x log2 e)`."""
    return torch.exp2(x * LOG2E)
