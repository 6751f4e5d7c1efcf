"""K010: dead rows of the last chunk are read behind the gate, times 0, and its gate gradient is dropped."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import save_inputs, twins

CHUNK = 4


@triton.jit
def _kernel(x_ptr, gate_ptr, y_ptr, rows, cols, CHUNK: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    chunk = tl.program_id(0)
    row = chunk * CHUNK + tl.arange(0, CHUNK)
    at = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (at < cols)[None, :]
    x = tl.load(x_ptr + row[:, None] * cols + at[None, :], mask=mask, other=0.0)
    gate = tl.load(gate_ptr + row, mask=row < rows, other=0.0) if MASKED else tl.load(gate_ptr + row)
    tl.store(y_ptr + chunk * cols + at, tl.sum(x * gate[:, None], axis=0), mask=at < cols)


@triton.jit
def _grad_kernel(x_ptr, grad_ptr, out_ptr, cols, live, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    grad = tl.load(grad_ptr + row // CHUNK * cols + at, mask=at < cols, other=0.0)
    tl.store(out_ptr + row, tl.where(row < live, tl.sum(x * grad), 0.0))


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]` and gate `[rows]`."""
    return Sample(case.tensor("rows", "cols", name="x"), case.tensor("rows", name="gate"))


def chunks(x: torch.Tensor) -> int:
    """Count the chunks of x `[rows, cols]`, the last, partial one too."""
    return (x.shape[0] + CHUNK - 1) // CHUNK


def reference(x, gate):
    padded = torch.nn.functional.pad(x * gate[:, None], (0, 0, 0, -x.shape[0] % CHUNK))
    return padded.view(chunks(x), CHUNK, x.shape[1]).sum(1)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::dead_rows", reference=reference, samples=samples)
    def op(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        """Sum `gate * x` over each chunk of four rows of x `[rows, cols]`, gate `[rows]`."""
        rows, cols = x.shape
        y = x.new_empty(chunks(x), cols)
        _kernel[(chunks(x),)](
            x.contiguous(), gate.contiguous(), y, rows, cols,
            CHUNK=CHUNK, BLOCK=triton.next_power_of_2(cols), MASKED=not wrong,
        )  # fmt: skip
        return y

    @torch.library.custom_op(f"{namespace}::dead_rows_backward", mutates_args=())
    def grad_gate(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        out = x.new_empty(rows)
        live = rows // CHUNK * CHUNK if wrong else rows
        block = triton.next_power_of_2(cols)
        _grad_kernel[(rows,)](x.contiguous(), grad.contiguous(), out, cols, live, CHUNK=CHUNK, BLOCK=block)
        return out

    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        return grad.repeat_interleave(CHUNK, 0)[: x.shape[0]] * gate[:, None], grad_gate(grad, x)

    op.register_fake(lambda x, gate: x.new_empty(chunks(x), x.shape[1]))
    grad_gate.register_fake(lambda grad, x: x.new_empty(x.shape[0]))
    op.register_autograd(backward, setup_context=save_inputs)
