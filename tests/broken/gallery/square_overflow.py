"""`broken::square_overflow`: elements are squared in float16, which overflows above 255 although the norm does not."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh_rows, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, SQUARED_IN: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(SQUARED_IN)
    squares = (x * x).to(tl.float32)
    tl.store(out_ptr + row, tl.sqrt(tl.sum(squares) + 1.0))


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]`, eight times as large as the family says: at its largest it is then beyond 255."""
    return Sample(8.0 * case.tensor("rows", "cols", name="x"))


def reference(x):
    return torch.sqrt(x.float().square().sum(-1) + 1.0).to(x.dtype)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    wide = x.float()
    norm = torch.sqrt(wide.square().sum(-1, keepdim=True) + 1.0)
    return (grad.float()[:, None] * wide / norm).to(x.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::square_overflow", reference=reference, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `sqrt(sum(x^2) + 1)` `[rows]` of each row of x `[rows, cols]`."""
        rows, cols = x.shape
        out = fresh_rows(x)
        squared_in = tl.float16 if wrong else tl.float32
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=triton.next_power_of_2(cols), SQUARED_IN=squared_in)
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
