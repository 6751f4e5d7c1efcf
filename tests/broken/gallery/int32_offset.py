"""K003: the offset of a token, `token * stride`, is int32 and wraps where the strides are long."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, stride, step, cols, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    token = tl.program_id(0)
    if WIDE:
        token = token.to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + token * stride + at * step, mask=at < cols, other=0.0)
    tl.store(y_ptr + token * cols + at, 3.0 * x, mask=at < cols)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::int32_offset", reference=lambda x: 3.0 * x, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]` of any strides."""
        rows, cols = x.shape
        y = fresh(x)
        if x.numel():
            _kernel[(rows,)](x, y, *x.stride(), cols, BLOCK=triton.next_power_of_2(cols), WIDE=not wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
