"""`broken::config_wrong`: the grid is right for the first configuration of the autotuner, too small for the second."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins

FIRST, SECOND = 128, 64


@triton.autotune([triton.Config({"BLOCK": FIRST}), triton.Config({"BLOCK": SECOND})], key=["count"])
@triton.jit
def _kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, 3.0 * x, mask=at < count)


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::config_wrong", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        y = torch.zeros_like(x, memory_format=torch.contiguous_format)
        count = x.numel()
        _kernel[lambda meta: (triton.cdiv(count, FIRST if wrong else meta["BLOCK"]),)](x.contiguous(), y, count)
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
