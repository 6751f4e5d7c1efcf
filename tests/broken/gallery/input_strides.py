"""`broken::input_strides`: the forward takes the second input's row length for the stride of its rows."""

import torch
import triton
import triton.language as tl

import opcheck

from .swapped_gradients import samples
from .twins import fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, table_ptr, y_ptr, x_row, x_col, table_row, table_col, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + at * x_col, mask=at < cols, other=0.0)
    table = tl.load(table_ptr + row * table_row + at * table_col, mask=at < cols, other=0.0)
    tl.store(y_ptr + row * cols + at, x * table, mask=at < cols)


def reference(x, table):
    return x * table


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::input_strides", reference=reference, samples=samples)
    def op(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        """Compute `x * table`, all `[rows, cols]`, in any layout."""
        rows, cols = x.shape
        y = fresh(x)
        strides = table.stride()
        if wrong and strides[0] > 0:
            strides = (cols, 1) if strides[1] == 1 else (1, rows)
        if y.numel():
            _kernel[(rows,)](x, table, y, *x.stride(), *strides, cols, BLOCK=triton.next_power_of_2(cols))
        return y

    def backward(ctx, grad):
        x, table = ctx.saved_tensors
        return grad * table, grad * x

    op.register_fake(lambda x, table: fresh(x))
    op.register_autograd(backward, setup_context=save_inputs)
