"""`broken::norm_tail`: the last element of a row is not summed, which among 1,024 alike is less than a rounding."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, row_shape, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, summed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < summed, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sqrt_rn(tl.sum(x * x)))


def reference(x):
    return torch.linalg.vector_norm(x.float(), dim=-1).to(x.dtype)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    wide = x.float()
    norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
    return torch.where(norm > 0, grad.float()[:, None] * wide / norm, 0.0).to(x.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::norm_tail", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the Euclidean norm `[rows]` of the rows of x `[rows, cols]`."""
        rows, cols = row_shape(x)
        out = fresh_rows(x)
        summed = cols - 1 if wrong else cols
        _kernel[(rows,)](x.contiguous(), out, cols, summed, BLOCK=triton.next_power_of_2(cols))
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
