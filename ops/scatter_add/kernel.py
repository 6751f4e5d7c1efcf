"""Scatter of rows with addition: what it asks of the kernels for rows.

Forward: `out = base; out[index[i]] += src[i]`, by float32 atomics whose order varies from run to run, then rounded
once: added up in a narrow dtype, a row that many are added to would stop growing.
Backward: `dbase = dout`, `dsrc[i] = dout[index[i]]`.
"""

import torch

from .. import _rows
from .._layout import check_inputs


def forward(base: torch.Tensor, index: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    """Add src `[count, dim]` into a copy of base `[rows, dim]` at the rows index `[count]`, in base's dtype."""
    check_inputs("scatter_add", base=base, src=src)
    if base.dim() != 2 or base.numel() == 0:
        raise ValueError(f"scatter_add: base is {list(base.shape)}, it should be [rows, dim], each at least 1")
    if index.dim() != 1 or src.shape != (*index.shape, base.shape[1]):
        raise ValueError(
            f"scatter_add: index {list(index.shape)} and src {list(src.shape)} should be [count] and [count, dim], "
            f"dim {base.shape[1]} as base's"
        )
    _rows.check_indices("scatter_add", "index", index, base.device)
    out = torch.empty(base.shape, dtype=torch.float32, device=base.device).copy_(base)
    _rows.add(out, index, src)
    return out.to(base.dtype)


def backward(grad: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return the gradient of src `[count, dim]` from that of the result `[rows, dim]`."""
    return _rows.gather(grad, index, missing=0.0)
