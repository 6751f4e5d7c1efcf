"""Scatter of rows with addition in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(base: torch.Tensor, index: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    """Apply torch's own index_add in float32, one row after the other, and round once to base's dtype."""
    return base.float().index_add(0, index, src.float()).to(base.dtype)


def golden(base: torch.Tensor, index: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    """Compute `out[r] = base[r] + sum of src[i] where index[i] is r`, the sum as a product with a matrix of 0 and 1."""
    places = torch.arange(index.shape[0], device=index.device)
    here = torch.sparse_coo_tensor(torch.stack([index, places]), torch.ones_like(src[:, 0]), (len(base), len(index)))
    return base + here @ src


def samples(case: Case) -> Sample:
    """Draw base `[rows, dim]`, src `[count, dim]` and an index `[count]` into base's rows."""
    base = case.tensor("rows", "dim", name="base")
    index = case.integers(0, max(case.dims["rows"], 1), "count", name="index")
    return Sample(base, index, case.tensor("count", "dim", name="src"))
