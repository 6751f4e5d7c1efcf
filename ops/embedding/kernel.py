"""Embedding lookup: what it asks of the kernels for rows.

Forward: `y[i] = weight[indices[i]]`. Backward: `dweight[indices[i]] += dy[i]`, by float32 atomics whose order varies
from run to run, then rounded once to weight's dtype: added up in a narrow dtype, the gradient of a frequent row would
stop growing.
"""

import torch

from .. import _rows
from .._layout import check_inputs


def forward(weight: torch.Tensor, indices: torch.Tensor, padding_idx: int | None) -> torch.Tensor:
    """Gather rows of weight `[rows, dim]` by indices `[...]`: `[..., dim]`, contiguous, in weight's dtype."""
    _check(weight, indices, padding_idx)
    return _rows.gather(weight, indices, missing=float("nan"))


def backward(
    grad: torch.Tensor, indices: torch.Tensor, rows: int, padding_idx: int | None, dtype: torch.dtype
) -> torch.Tensor:
    """Return the gradient of weight `[rows, dim]` from grad `[..., dim]`; that of row padding_idx is zero."""
    grad_weight = torch.zeros(rows, grad.shape[-1], dtype=torch.float32, device=grad.device)
    _rows.add(grad_weight, indices, grad, skipped=_rows.NO_ROW if padding_idx is None else padding_idx % rows)
    return grad_weight.to(dtype)


def _check(weight: torch.Tensor, indices: torch.Tensor, padding_idx: int | None) -> None:
    check_inputs("embedding", weight=weight)
    if weight.dim() != 2 or weight.numel() == 0:
        raise ValueError(f"embedding: weight is {list(weight.shape)}, it should be [rows, dim], each at least 1")
    _rows.check_indices("embedding", "indices", indices, weight.device)
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise ValueError(f"embedding: padding_idx is {padding_idx}, it should be from {-rows} to {rows - 1}")
