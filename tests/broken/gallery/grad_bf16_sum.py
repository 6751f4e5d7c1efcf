"""`broken::grad_bf16_sum`: the weight gradient is summed over 256 rows in bfloat16, which has 8 bits of precision."""

import torch
import triton
import triton.language as tl

import opcheck

from .grad_row_block import samples
from .twins import fresh, save_inputs, twins


@triton.jit
def _grad_weight_kernel(grad_ptr, x_ptr, out_ptr, rows, cols, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], ACCUMULATOR)
    for row in range(rows):
        grad = tl.load(grad_ptr + row * cols + at, mask=at < cols, other=0.0).to(ACCUMULATOR)
        total += grad * tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(ACCUMULATOR)
    tl.store(out_ptr + at, total, mask=at < cols)


def reference(x, weight):
    return (x.float() * weight.float()).to(x.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::grad_bf16_sum", reference=reference, samples=samples)
    def op(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Compute `x * weight` for x `[rows, cols]` and weight `[cols]`."""
        return (x * weight).contiguous()

    @torch.library.custom_op(f"{namespace}::grad_bf16_sum_backward", mutates_args=())
    def grad_weight(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        out = x.new_empty(cols)
        accumulator = tl.bfloat16 if wrong else tl.float32
        _grad_weight_kernel[(1,)](
            grad.contiguous(), x.contiguous(), out, rows, cols,
            ACCUMULATOR=accumulator, BLOCK=triton.next_power_of_2(max(cols, 1)),
        )  # fmt: skip
        return out

    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad * weight, grad_weight(grad, x)

    op.register_fake(lambda x, weight: fresh(x))
    grad_weight.register_fake(lambda grad, x: x.new_empty(x.shape[1]))
    op.register_autograd(backward, setup_context=save_inputs)
