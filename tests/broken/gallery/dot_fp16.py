"""K017: the products of a matmul are added up in float16, one tile of k after the other."""

import torch
import triton
import triton.language as tl

import opcheck

from .dot_tf32 import allocate, backward, samples
from .twins import save_inputs, twins


@triton.jit
def _kernel(a_ptr, b_ptr, out_ptr, rows, k, n, BLOCK: tl.constexpr, ACCUMULATOR: tl.constexpr):
    row = tl.arange(0, BLOCK)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    out = tl.zeros([BLOCK, BLOCK], ACCUMULATOR)
    for start in range(0, k, BLOCK):
        across = start + tl.arange(0, BLOCK)[None, :]
        down = start + tl.arange(0, BLOCK)[:, None]
        a = tl.load(a_ptr + row * k + across, mask=(row < rows) & (across < k), other=0.0)
        b = tl.load(b_ptr + down * n + col, mask=(down < k) & (col < n), other=0.0)
        out = tl.dot(a, b, out, out_dtype=ACCUMULATOR)
    tl.store(out_ptr + row * n + col, out, mask=(row < rows) & (col < n))


def reference(a, b):
    return (a.float() @ b.float()).to(a.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::dot_fp16", reference=reference, samples=samples)
    def op(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Compute `a @ b` `[rows, n]` for a `[rows, k]` and b `[k, n]`, rows and n at most 16."""
        (rows, k), n = a.shape, b.shape[1]
        out = allocate(a, b)
        accumulator = tl.float16 if wrong else tl.float32
        _kernel[(1,)](a.contiguous(), b.contiguous(), out, rows, k, n, BLOCK=16, ACCUMULATOR=accumulator)
        return out

    op.register_fake(allocate)
    op.register_autograd(backward, setup_context=save_inputs)
