"""`broken::pipeline_stages`: The pipeline keeps 16 tiles of each operand, for which no GPU has the shared memory."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import save_inputs, twins


@triton.jit
def _kernel(a_ptr, b_ptr, out_ptr, rows, k, n, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    out = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        depth = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + row * k + depth[None, :], mask=(row < rows) & (depth[None, :] < k), other=0.0)
        b = tl.load(b_ptr + depth[:, None] * n + col, mask=(depth[:, None] < k) & (col < n), other=0.0)
        out = tl.dot(a, b, out, input_precision="ieee")
    tl.store(out_ptr + row * n + col, out, mask=(row < rows) & (col < n))


def samples(case: Case) -> Sample:
    """Draw a `[rows, k]` and b `[k, n]`."""
    return Sample(case.tensor("rows", "k", name="a"), case.tensor("k", "n", name="b"))


def reference(a, b):
    return a @ b


def allocate(a, b):
    return a.new_empty(a.shape[0], b.shape[1])


def backward(ctx, grad):
    a, b = ctx.saved_tensors
    return grad @ b.t(), a.t() @ grad


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::pipeline_stages", reference=reference, samples=samples)
    def op(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Compute `a @ b` `[rows, n]` for a `[rows, k]` and b `[k, n]`, rows and n at most 64."""
        (rows, k), n = a.shape, b.shape[1]
        out = allocate(a, b)
        _kernel[(1,)](a.contiguous(), b.contiguous(), out, rows, k, n, BLOCK=64, num_stages=16 if wrong else 2)
        return out

    op.register_fake(allocate)
    op.register_autograd(backward, setup_context=save_inputs)
