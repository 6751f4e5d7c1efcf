"""`broken::grad_row_block`: the weight gradient sums whole blocks of rows only; the last, partial block is missing."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, save_inputs, twins

BLOCK_ROWS = 4


@triton.jit
def _grad_weight_kernel(
    grad_ptr, x_ptr, out_ptr, blocks, rows, cols, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr
):
    col = tl.arange(0, BLOCK_COLS)[None, :]
    total = tl.zeros([BLOCK_ROWS, BLOCK_COLS], tl.float32)
    for block in range(blocks):
        row = (block * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
        mask = (row < rows) & (col < cols)
        grad = tl.load(grad_ptr + row * cols + col, mask=mask, other=0.0)
        total += grad * tl.load(x_ptr + row * cols + col, mask=mask, other=0.0)
    out = tl.arange(0, BLOCK_COLS)
    tl.store(out_ptr + out, tl.sum(total, axis=0), mask=out < cols)


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]` and weight `[cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"), case.tensor("cols", name="weight"))


def reference(x, weight):
    return x * weight


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::grad_row_block", reference=reference, samples=samples)
    def op(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Compute `x * weight` for x `[rows, cols]` and weight `[cols]`."""
        return (x * weight).contiguous()

    @torch.library.custom_op(f"{namespace}::grad_row_block_backward", mutates_args=())
    def grad_weight(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        out = x.new_empty(cols)
        blocks = rows // BLOCK_ROWS if wrong else triton.cdiv(rows, BLOCK_ROWS)
        _grad_weight_kernel[(1,)](
            grad.contiguous(), x.contiguous(), out, blocks, rows, cols,
            BLOCK_ROWS=BLOCK_ROWS, BLOCK_COLS=triton.next_power_of_2(max(cols, 1)),
        )  # fmt: skip
        return out

    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad * weight, grad_weight(grad, x)

    op.register_fake(lambda x, weight: fresh(x))
    grad_weight.register_fake(lambda grad, x: x.new_empty(x.shape[1]))
    op.register_autograd(backward, setup_context=save_inputs)
