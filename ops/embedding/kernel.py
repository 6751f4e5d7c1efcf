"""Embedding lookup: Triton kernels and their launches.

Forward: `y[i] = weight[indices[i]]`. Backward: `dweight[indices[i]] += dy[i]`, by float32 atomics whose order varies
from run to run, then rounded once to weight's dtype: added up in a narrow dtype, the gradient of a frequent row would
stop growing.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs

MAX_BLOCK = 512
BLOCK_TOKENS = 8
NO_PADDING = -1


@triton.jit
def _forward_kernel(
    weight_ptr,
    indices_ptr,
    y_ptr,
    weight_stride_row,
    weight_stride_dim,
    tokens,
    rows,
    dim,
    BLOCK: tl.constexpr,
    BLOCK_TOKENS: tl.constexpr,
):
    token = (tl.program_id(0).to(tl.int64) * BLOCK_TOKENS + tl.arange(0, BLOCK_TOKENS))[:, None]
    at = (tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, :]
    index = tl.load(indices_ptr + token, mask=token < tokens, other=-1).to(tl.int64)
    legal = (index >= 0) & (index < rows)
    # An index that is no row reads nothing and shows as NaN.
    row = tl.load(
        weight_ptr + index * weight_stride_row + at * weight_stride_dim, mask=(at < dim) & legal, other=float("nan")
    )
    tl.store(y_ptr + token * dim + at, row, mask=(at < dim) & (token < tokens))


@triton.jit
def _backward_kernel(
    grad_ptr,
    indices_ptr,
    grad_weight_ptr,
    grad_stride_token,
    grad_stride_dim,
    tokens,
    rows,
    dim,
    padding_idx,
    BLOCK: tl.constexpr,
    BLOCK_TOKENS: tl.constexpr,
):
    token = (tl.program_id(0).to(tl.int64) * BLOCK_TOKENS + tl.arange(0, BLOCK_TOKENS))[:, None]
    at = (tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, :]
    index = tl.load(indices_ptr + token, mask=token < tokens, other=-1).to(tl.int64)
    counted = (index >= 0) & (index < rows) & (index != padding_idx)
    mask = (at < dim) & counted
    grad = tl.load(grad_ptr + token * grad_stride_token + at * grad_stride_dim, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(grad_weight_ptr + index * dim + at, grad, mask=mask, sem="relaxed")


def forward(weight: torch.Tensor, indices: torch.Tensor, padding_idx: int | None) -> torch.Tensor:
    """Gather rows of weight `[rows, dim]` by indices `[...]`: `[..., dim]`, contiguous, in weight's dtype."""
    _check(weight, indices, padding_idx)
    rows, dim = weight.shape
    y = weight.new_empty(*indices.shape, dim)
    if y.numel():
        block = min(triton.next_power_of_2(dim), MAX_BLOCK)
        with torch.cuda.device_of(weight):
            _forward_kernel[(triton.cdiv(indices.numel(), BLOCK_TOKENS), triton.cdiv(dim, block))](
                weight,
                indices.contiguous(),
                y,
                *weight.stride(),
                indices.numel(),
                rows,
                dim,
                BLOCK=block,
                BLOCK_TOKENS=BLOCK_TOKENS,
            )
    return y


def backward(
    grad: torch.Tensor, indices: torch.Tensor, rows: int, padding_idx: int | None, dtype: torch.dtype
) -> torch.Tensor:
    """Return the gradient of weight `[rows, dim]` from grad `[..., dim]`; that of row padding_idx is zero."""
    dim = grad.shape[-1]
    grad_weight = torch.zeros(rows, dim, dtype=torch.float32, device=grad.device)
    if grad.numel():
        flat = grad.reshape(-1, dim)
        block = min(triton.next_power_of_2(dim), MAX_BLOCK)
        with torch.cuda.device_of(grad):
            _backward_kernel[(triton.cdiv(indices.numel(), BLOCK_TOKENS), triton.cdiv(dim, block))](
                flat,
                indices.contiguous(),
                grad_weight,
                *flat.stride(),
                indices.numel(),
                rows,
                dim,
                NO_PADDING if padding_idx is None else padding_idx % rows,
                BLOCK=block,
                BLOCK_TOKENS=BLOCK_TOKENS,
            )
    return grad_weight.to(dtype)


def _check(weight: torch.Tensor, indices: torch.Tensor, padding_idx: int | None) -> None:
    check_inputs("embedding", weight=weight)
    if weight.dim() != 2 or weight.numel() == 0:
        raise ValueError(f"embedding: weight is {list(weight.shape)}, it should be [rows, dim], each at least 1")
    if indices.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"embedding: indices are {indices.dtype}, they should be int64 or int32")
    if indices.device != weight.device:
        raise ValueError(f"embedding: indices are on {indices.device}, weight is on {weight.device}")
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise ValueError(f"embedding: padding_idx is {padding_idx}, it should be from {-rows} to {rows - 1}")
