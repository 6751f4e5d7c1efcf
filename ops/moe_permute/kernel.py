"""Tokens in the order of their experts: Triton kernels and their launches.

A stable counting sort without atomics. The copies, `[tokens, topk]` flattened, are cut into blocks: one kernel counts
each expert's copies in each block, sums over these counts give where a block's copies of an expert begin, and a second
kernel adds how many of the block come before. A third one copies the rows.
Backward: `dtoken = sum of the gradients of its copies`, in float32, rounded once.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs
from .._rows import check_indices

BLOCK_COPIES = 64
BLOCK_BINS = 32
BLOCK_TOKENS = 32
MAX_BLOCK = 128


@triton.jit
def _bins(ids_ptr, copies, experts, BLOCK: tl.constexpr):
    """Return the numbers of this block's copies and their bins: the expert, or one behind them for other ids."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    expert = tl.load(ids_ptr + at, mask=at < copies, other=0).to(tl.int64)
    expert = tl.where((expert >= 0) & (expert < experts), expert, experts)
    return at, tl.where(at < copies, expert, -1)


@triton.jit
def _count_kernel(ids_ptr, counts_ptr, copies, experts, BLOCK: tl.constexpr, BLOCK_BINS: tl.constexpr):
    _, own = _bins(ids_ptr, copies, experts, BLOCK)
    counts_ptr += tl.program_id(0).to(tl.int64) * (experts + 1)
    for start in range(0, experts + 1, BLOCK_BINS):
        bins = start + tl.arange(0, BLOCK_BINS)
        counted = (own[:, None] == bins[None, :]).to(tl.int32)
        tl.store(counts_ptr + bins, tl.sum(counted, 0), mask=bins <= experts)


@triton.jit
def _place_kernel(ids_ptr, starts_ptr, rows_ptr, copies, experts, BLOCK: tl.constexpr, BLOCK_BINS: tl.constexpr):
    at, own = _bins(ids_ptr, copies, experts, BLOCK)
    starts_ptr += tl.program_id(0).to(tl.int64) * (experts + 1)
    row = tl.zeros([BLOCK], tl.int64)
    for start in range(0, experts + 1, BLOCK_BINS):
        bins = start + tl.arange(0, BLOCK_BINS)
        first = tl.load(starts_ptr + bins, mask=bins <= experts, other=0)
        counted = (own[:, None] == bins[None, :]).to(tl.int32)
        before = tl.cumsum(counted, 0) - counted
        row += tl.sum(tl.where(counted > 0, first[None, :] + before, 0), 1)
    tl.store(rows_ptr + at, row, mask=at < copies)


@triton.jit
def _copy_kernel(
    tokens_ptr,
    rows_ptr,
    out_ptr,
    stride_token,
    stride_hidden,
    copies,
    topk,
    hidden,
    BLOCK_TOKENS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    copy = (tl.program_id(0).to(tl.int64) * BLOCK_TOKENS + tl.arange(0, BLOCK_TOKENS))[:, None]
    at = (tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, :]
    row = tl.load(rows_ptr + copy, mask=copy < copies, other=0)
    mask = (copy < copies) & (at < hidden)
    token = tl.load(tokens_ptr + copy // topk * stride_token + at * stride_hidden, mask=mask, other=0.0)
    tl.store(out_ptr + row * hidden + at, token, mask=mask)


@triton.jit
def _sum_kernel(
    grad_ptr,
    rows_ptr,
    out_ptr,
    stride_row,
    stride_hidden,
    tokens,
    topk,
    hidden,
    BLOCK_TOKENS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = (tl.program_id(0).to(tl.int64) * BLOCK_TOKENS + tl.arange(0, BLOCK_TOKENS))[:, None]
    at = (tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, :]
    mask = (token < tokens) & (at < hidden)
    total = tl.zeros([BLOCK_TOKENS, BLOCK], tl.float32)
    for choice in range(topk):
        row = tl.load(rows_ptr + token * topk + choice, mask=token < tokens, other=0)
        total += tl.load(grad_ptr + row * stride_row + at * stride_hidden, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + token * hidden + at, total, mask=mask)


def forward(
    tokens: torch.Tensor, expert_ids: torch.Tensor, experts: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the copies `[tokens * topk, hidden]`, their rows `[tokens, topk]` and the experts' starts."""
    _check(tokens, expert_ids, experts)
    topk, hidden = expert_ids.shape[1], tokens.shape[1]
    copies = expert_ids.numel()
    rows = torch.empty(expert_ids.shape, dtype=torch.int64, device=tokens.device)
    out = tokens.new_empty(copies, hidden)
    if not copies:
        return out, rows, torch.zeros(experts + 1, dtype=torch.int64, device=tokens.device)
    ids, blocks = expert_ids.contiguous(), triton.cdiv(copies, BLOCK_COPIES)
    counts = torch.empty(blocks, experts + 1, dtype=torch.int64, device=tokens.device)
    with torch.cuda.device_of(tokens):
        _count_kernel[(blocks,)](ids, counts, copies, experts, BLOCK=BLOCK_COPIES, BLOCK_BINS=BLOCK_BINS)
        totals = counts.sum(0)
        begin = totals.cumsum(0) - totals
        starts = begin + counts.cumsum(0) - counts
        _place_kernel[(blocks,)](ids, starts, rows, copies, experts, BLOCK=BLOCK_COPIES, BLOCK_BINS=BLOCK_BINS)
        grid, block = _cut(copies, hidden)
        _copy_kernel[grid](
            tokens, rows, out, *tokens.stride(), copies, topk, hidden, BLOCK_TOKENS=BLOCK_TOKENS, BLOCK=block
        )
    return out, rows, begin


def backward(grad: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return the gradient of tokens `[tokens, hidden]` from grad `[tokens * topk, hidden]` and the copies' rows."""
    (tokens, topk), hidden = rows.shape, grad.shape[1]
    out = grad.new_empty(tokens, hidden)
    if tokens:
        grid, block = _cut(tokens, hidden)
        with torch.cuda.device_of(grad):
            _sum_kernel[grid](
                grad, rows, out, *grad.stride(), tokens, topk, hidden, BLOCK_TOKENS=BLOCK_TOKENS, BLOCK=block
            )
    return out


def _cut(rows: int, hidden: int) -> tuple[tuple[int, int], int]:
    """Return the grid over rows and columns, and the number of columns of a program."""
    block = min(triton.next_power_of_2(hidden), MAX_BLOCK)
    return (triton.cdiv(rows, BLOCK_TOKENS), triton.cdiv(hidden, block)), block


def _check(tokens: torch.Tensor, expert_ids: torch.Tensor, experts: int) -> None:
    check_inputs("moe_permute", tokens=tokens)
    check_indices("moe_permute", "expert_ids", expert_ids, tokens.device)
    if tokens.dim() != 2 or expert_ids.dim() != 2 or tokens.shape[0] != expert_ids.shape[0]:
        raise ValueError(
            f"moe_permute: tokens {list(tokens.shape)} and expert_ids {list(expert_ids.shape)} should be "
            "[tokens, hidden] and [tokens, topk]"
        )
    if tokens.shape[1] == 0 or expert_ids.shape[1] == 0 or experts < 1:
        raise ValueError(
            f"moe_permute: hidden is {tokens.shape[1]}, topk {expert_ids.shape[1]}, experts {experts}; each should be "
            "at least 1"
        )
