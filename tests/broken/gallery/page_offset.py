"""K005: the number of a page times the stride of a page wraps in int32, for the later pages of a large pool."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import refuse_empty, twins


@triton.jit
def _kernel(pool_ptr, page_ptr, y_ptr, stride, step, cols, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0)
    page = tl.load(page_ptr + row)
    if not WIDE:
        page = page.to(tl.int32)
    at = tl.arange(0, BLOCK)
    y = tl.load(pool_ptr + page * stride + at * step, mask=at < cols, other=0.0)
    tl.store(y_ptr + row * cols + at, y, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw pool `[slots, cols]` and page `[rows]`, numbers of its pages."""
    pool = case.tensor("slots", "cols", name="pool")
    return Sample(pool, case.integers(0, max(1, case.dims["slots"]), "rows", name="page"))


def reference(pool, page):
    return pool[page]


def backward(ctx, grad):
    (page,) = ctx.saved_tensors
    return grad.new_zeros(ctx.shape).index_add_(0, page, grad), None


def setup_context(ctx, inputs, output):
    pool, page = inputs
    ctx.shape = pool.shape
    ctx.save_for_backward(page)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::page_offset", reference=reference, samples=samples)
    def op(pool: torch.Tensor, page: torch.Tensor) -> torch.Tensor:
        """Read pages `[rows]` of pool `[slots, cols]`, giving `[rows, cols]`."""
        rows, (slots, cols) = page.shape[0], pool.shape
        refuse_empty(slots, cols)
        y = pool.new_empty(rows, cols)
        _kernel[(rows,)](
            pool, page.contiguous(), y, *pool.stride(), cols, BLOCK=triton.next_power_of_2(cols), WIDE=not wrong
        )
        return y

    op.register_fake(lambda pool, page: pool.new_empty(page.shape[0], pool.shape[1]))
    op.register_autograd(backward, setup_context=setup_context)
