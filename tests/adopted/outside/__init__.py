"""Stands for a package that knows nothing of opcheck: one op of every way in which kernels are published."""

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def scale_kernel(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, (tl.load(x + at, mask=at < n).to(tl.float32) * factor).to(y.dtype.element_ty), mask=at < n)


def launched(x, factor):
    x = x.contiguous()
    y = torch.empty_like(x)
    wrap_triton(scale_kernel)[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), factor, BLOCK=64)
    return y


@triton_op("outside::scale", mutates_args=())
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return launched(x, factor)


scale.register_autograd(
    lambda ctx, dy: (scale(dy, ctx.factor), None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
)


@torch.library.custom_op("outside::shift_", mutates_args=("x",))
def shift_(x: torch.Tensor, by: float) -> None:
    x.add_(by)


@shift_.register_fake
def _(x, by):
    return None


library = torch.library.Library("outside", "FRAGMENT")
library.define("halves(Tensor x) -> (Tensor, Tensor)")
library.define("nowhere(Tensor x) -> Tensor")
library.define("twice(Tensor x) -> Tensor")
library.define("twice.scaled(Tensor x, float by) -> Tensor")


@torch.library.impl(library, "halves", "CPU")
def halves(x):
    middle = x.shape[0] // 2
    return x[:middle].clone(), x[middle:].clone()


class Weighted(torch.autograd.Function):
    """Old style; an output that is not asked for is None, and the weight, a tensor of no dimensions, has no gradient.

    `keep` has a default, which `apply` does not fill in.
    """

    @staticmethod
    def forward(ctx, x, weight, keep=False):
        ctx.save_for_backward(weight)
        return x * weight, x.detach().clone() if keep else None

    @staticmethod
    def backward(ctx, dy, _):
        (weight,) = ctx.saved_tensors
        return dy * weight, None, None


class Square(torch.autograd.Function):
    """New style; its gradient is wrong by a factor of 2."""

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.saved_tensors[0]


class Gate(torch.nn.Module):
    """A module with a parameter of its own, which is 1."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        return torch.sigmoid(x) * x * self.weight.to(x.dtype)


def add(x, others, *, alpha):
    """Takes a list."""
    return x + alpha * others[0] + alpha * others[1]


def overwrite(x, y):
    """Writes into `x`."""
    x.copy_(y * 2)
