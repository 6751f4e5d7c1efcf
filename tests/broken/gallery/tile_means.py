"""`broken::tile_means`: the variances of a row's tiles are added up, without what the tiles' means differ by."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, row_shape, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, MERGED: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    # Near 0, where a mean that is merged step by step loses nothing.
    first = tl.load(x_ptr + row * cols)
    count = 0.0
    mean = 0.0
    squares = 0.0
    for start in range(0, cols, BLOCK):
        mask = start + at < cols
        x = tl.load(x_ptr + row * cols + start + at, mask=mask, other=0.0) - first
        more = tl.sum(mask.to(tl.float32))
        tile_mean = tl.sum(tl.where(mask, x, 0.0)) / more
        centred = tl.where(mask, x - tile_mean, 0.0)
        squares += tl.sum(centred * centred)
        apart = tile_mean - mean
        if MERGED:  # Chan, Golub and LeVeque, 1979, equation 2.1
            squares += apart * apart * (count * more / (count + more))
        count += more
        mean += apart * (more / count)
    tl.store(out_ptr + row, squares / cols)


def reference(x):
    return (x - x.mean(-1, keepdim=True)).square().mean(-1)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    centred = x - x.mean(-1, keepdim=True)
    return 2.0 / x.shape[-1] * grad[:, None] * (centred - centred.mean(-1, keepdim=True))


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::tile_means", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the variance `[rows]` of the rows of x `[rows, cols]`, divided by cols."""
        rows, cols = row_shape(x)
        out = fresh_rows(x)
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=32, MERGED=not wrong)
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
