"""`broken::unlocked_sum`: one program per row reads, adds and stores the same sums without an atomic: a race."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, save_shape, twins


@triton.jit
def _racing_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    before = tl.load(out_ptr + at, mask=at < cols, other=0.0)
    tl.store(out_ptr + at, before + x, mask=at < cols)


@triton.jit
def _kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for row in range(rows):
        total += tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    tl.store(out_ptr + at, total, mask=at < cols)


def reference(x):
    return x.sum(0)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::unlocked_sum", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Sum x `[rows, cols]` over its rows, giving `[cols]`."""
        rows, cols = x.shape
        block = triton.next_power_of_2(cols)
        out = x.new_zeros(cols)
        if wrong:
            _racing_kernel[(rows,)](x.contiguous(), out, cols, BLOCK=block)
        else:
            _kernel[(1,)](x.contiguous(), out, rows, cols, BLOCK=block)
        return out

    op.register_fake(lambda x: x.new_empty(x.shape[1]))
    op.register_autograd(lambda ctx, grad: grad.expand(ctx.shape).clone(), setup_context=save_shape)
