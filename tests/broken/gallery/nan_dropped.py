"""K048: `tl.max` passes over NaN, so the maximum of a row with a NaN looks healthy."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, KEEP_NAN: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf")).to(tl.float32)
    largest = tl.max(x)
    if KEEP_NAN:
        odd = tl.max((x != x).to(tl.int32))
        largest = tl.where(odd > 0, float("nan"), largest)
    tl.store(out_ptr + row, largest)


def reference(x):
    return x.amax(-1)


def backward(ctx, grad):
    """Share the gradient among equal maxima, as torch.amax does."""
    (x,) = ctx.saved_tensors
    chosen = x == x.amax(-1, keepdim=True)
    return grad[:, None] * chosen / chosen.sum(-1, keepdim=True)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::nan_dropped", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Find the largest element `[rows]` of each row of x `[rows, cols]`; NaN counts as the largest."""
        rows, cols = x.shape
        out = fresh_rows(x)
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=triton.next_power_of_2(cols), KEEP_NAN=not wrong)
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
