"""Signed errors: a kernel that rounds the wrong way is within every tolerance and still wrong on average."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from opcheck.core.formats import Format
from opcheck.core.measured import Bias

FEWEST = 256  # judged elements
DISTINCT = 64  # values of |golden|; fewer make one value's rounding look like a bias
CLIP = {"narrow": 0.5, "wide": 32.0}  # ulps: 4 x the limits, so that one outlier is not a bias


def bias_of(
    values: Tensor, g: Tensor, r: Tensor, step: Tensor, compared: Tensor, fmt: Format, cols: int = 1
) -> Bias | None:
    """Return the mean signed error of `values` `[n]` in ulps, None where there is too little to tell.

    Args:
        values: Target or reference, float64.
        g: Golden, float64.
        r: Golden rounded to `fmt`; narrow types are compared with it, since half an ulp of rounding is legitimate.
        step: `ulp(golden)`.
        compared: Elements that count.
        cols: Elements of a row, of which the errors may be one and the same: a matmul's operand that is rounded, or a
            statistic, moves a whole row.
    """
    # Exact zeros have no sign and no rounding: they would only dilute the mean.
    kept = compared & (g != 0)
    count = int(kept.sum())
    if count < FEWEST:
        return None
    magnitudes = g[kept].abs()
    stride = max(1, count // (64 * DISTINCT))
    distinct = int(torch.unique(magnitudes[::stride]).numel())
    if distinct < DISTINCT:
        return None
    clip = CLIP["wide"] if fmt.wide else CLIP["narrow"]
    every = torch.where(kept, (values - (g if fmt.wide else r)) / step, 0.0).clamp(-clip, clip)
    error, sign = every[kept], torch.sign(g)
    outward = error * sign[kept]
    outward_error, upward_error = (float(item.std()) / count**0.5 for item in (outward, error))
    return Bias(
        count=count,
        distinct=min(distinct, DISTINCT),
        outward=float(outward.mean()),
        outward_error=outward_error,
        upward=float(error.mean()),
        upward_error=upward_error,
        outward_by_rows=_error_by_rows(every * sign, kept, cols),
        upward_by_rows=_error_by_rows(every, kept, cols),
    )


def _error_by_rows(errors: Tensor, kept: Tensor, cols: int) -> float:
    """Return the standard error of the mean of errors `[n]` whose rows are independent, and not their elements.

    Source: Liang and Zeger, Biometrika 73 (1986), the variance of a mean of clusters.
    """
    rows = errors.numel() // max(cols, 1)
    if cols < 2 or rows < 2:
        return 0.0
    count = int(kept.sum())
    deviations = torch.where(kept, errors - errors.sum() / count, 0.0).view(rows, cols).sum(1)
    return math.sqrt(float(deviations.square().sum() * rows / (rows - 1))) / count
