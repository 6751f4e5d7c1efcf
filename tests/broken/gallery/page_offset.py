"""K005: the number of a page times the stride of a page wraps in int32, for pages beyond 7,767 of a shared pool."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import refuse_empty, twins

PAGE_STRIDE = 276_480  # elements: 480 tokens of 576
PAGES = 163_000


@triton.jit
def _kernel(pool_ptr, page_ptr, y_ptr, stride, size, cols, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0)
    page = tl.load(page_ptr + row)
    if not WIDE:
        page = page.to(tl.int32)
    at = tl.arange(0, BLOCK)
    place = (page * stride + at) % size
    place = tl.where(place < 0, place + size, place)
    y = tl.load(pool_ptr + place, mask=at < cols, other=0.0)
    tl.store(y_ptr + row * cols + at, y, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw pool `[slots, cols]` and page `[rows]`, numbers of pages of the whole cache."""
    return Sample(case.tensor("slots", "cols", name="pool"), case.integers(0, PAGES, "rows", name="page"))


def _places(pool: torch.Tensor, page: torch.Tensor) -> torch.Tensor:
    return (page[:, None] * PAGE_STRIDE + torch.arange(pool.shape[1])) % pool.numel()


def reference(pool, page):
    return pool.reshape(-1)[_places(pool, page)]


def backward(ctx, grad):
    pool, page = ctx.saved_tensors
    places = _places(pool, page).reshape(-1)
    return grad.new_zeros(pool.numel()).index_add_(0, places, grad.reshape(-1)).view(pool.shape), None


def save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::page_offset", reference=reference, samples=samples)
    def op(pool: torch.Tensor, page: torch.Tensor) -> torch.Tensor:
        """Read the start of each page `[rows]`, giving `[rows, cols]`; pool `[slots, cols]` is what is in memory."""
        rows, (slots, cols) = page.shape[0], pool.shape
        refuse_empty(slots, cols)
        y = pool.new_empty(rows, cols)
        _kernel[(rows,)](
            pool.contiguous(), page.contiguous(), y, PAGE_STRIDE, slots * cols, cols,
            BLOCK=triton.next_power_of_2(cols), WIDE=not wrong,
        )  # fmt: skip
        return y

    op.register_fake(lambda pool, page: pool.new_empty(page.shape[0], pool.shape[1]))
    op.register_autograd(backward, setup_context=save)
