"""K077: the number of rows is the number of elements divided by the length of a row, which may be 0."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, save_shape, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(x))


def reference(x):
    return x.sum(-1)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::empty_reduction", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Sum the rows of x `[rows, cols]`, giving `[rows]`; the sum of nothing is 0."""
        cols = x.shape[1]
        rows = x.numel() // cols if wrong else x.shape[0]
        out = fresh_rows(x)
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=triton.next_power_of_2(max(cols, 1)))
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(lambda ctx, grad: grad[:, None].expand(ctx.shape).clone(), setup_context=save_shape)
