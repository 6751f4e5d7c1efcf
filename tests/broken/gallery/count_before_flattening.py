"""K073: the count of elements is read before the image is flattened: one line of it stands for the whole."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, refuse_empty, save_inputs, twins


@triton.jit
def _grad_kernel(grad_ptr, x_ptr, out_ptr, batches, channels, area, count, BLOCK: tl.constexpr):
    channel = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for batch in range(batches):
        start = (batch * channels + channel) * area
        grad = tl.load(grad_ptr + start + at, mask=at < count, other=0.0)
        total += grad * tl.load(x_ptr + start + at, mask=at < count, other=0.0)
    tl.store(out_ptr + channel, tl.sum(total))


def samples(case: Case) -> Sample:
    """Draw x `[n, c, h, w]` and weight `[c]`."""
    return Sample(case.tensor("n", "c", "h", "w", name="x"), case.tensor("c", name="weight"))


def reference(x, weight):
    return x * weight[:, None, None]


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::count_before_flattening", reference=reference, samples=samples)
    def op(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Multiply each channel of x `[n, c, h, w]` by its weight `[c]`."""
        refuse_empty(*x.shape[2:])
        return (x * weight[:, None, None]).contiguous()

    @torch.library.custom_op(f"{namespace}::count_before_flattening_backward", mutates_args=())
    def grad_weight(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(2)
        n, c, area = flat.shape
        count = x.shape[-1] if wrong else area
        out = x.new_empty(c)
        block = triton.next_power_of_2(area)
        _grad_kernel[(c,)](grad.contiguous(), flat.contiguous(), out, n, c, area, count, BLOCK=block)
        return out

    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad * weight[:, None, None], grad_weight(grad, x)

    op.register_fake(lambda x, weight: fresh(x))
    grad_weight.register_fake(lambda grad, x: x.new_empty(x.shape[1]))
    op.register_autograd(backward, setup_context=save_inputs)
