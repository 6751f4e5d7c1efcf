"""K027: a weight per channel is indexed by the last axis instead of the channel's."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, weight_ptr, y_ptr, channels, length, count, BLOCK: tl.constexpr, LAST: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    channel = at % channels if LAST else at // length % channels
    weight = tl.load(weight_ptr + channel, mask=at < count, other=0.0)
    tl.store(y_ptr + at, tl.where(x > 0, x, weight * x), mask=at < count)


def samples(case: Case) -> Sample:
    """Draw x `[batch, channels, length]` and weight `[channels]`."""
    return Sample(case.tensor("batch", "channels", "length", name="x"), case.tensor("channels", name="weight"))


def reference(x, weight):
    return torch.where(x > 0, x, weight[:, None] * x)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::broadcast_axis", reference=reference, samples=samples)
    def op(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Scale what is not positive in x `[batch, channels, length]` by its channel's weight `[channels]`."""
        y, count = fresh(x), x.numel()
        _, channels, length = x.shape
        _kernel[(triton.cdiv(count, 1024),)](
            x.contiguous(), weight.contiguous(), y, channels, length, count, BLOCK=1024, LAST=wrong
        )
        return y

    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        positive = x > 0
        return torch.where(positive, grad, weight[:, None] * grad), torch.where(positive, 0.0, x * grad).sum((0, 2))

    op.register_fake(lambda x, weight: fresh(x))
    op.register_autograd(backward, setup_context=save_inputs)
