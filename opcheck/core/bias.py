"""Signed errors: a kernel that rounds the wrong way is within every tolerance and still wrong on average."""

from __future__ import annotations

import torch
from torch import Tensor

from opcheck.core.formats import Format
from opcheck.core.measured import Bias

FEWEST = 256  # judged elements
DISTINCT = 64  # values of |golden|; fewer make one value's rounding look like a bias
CLIP = {"narrow": 0.5, "wide": 32.0}  # ulps: 4 x the limits, so that one outlier is not a bias


def bias_of(values: Tensor, g: Tensor, r: Tensor, step: Tensor, compared: Tensor, fmt: Format) -> Bias | None:
    """Return the mean signed error of `values` `[n]` in ulps, None where there is too little to tell.

    Args:
        values: Target or reference, float64.
        g: Golden, float64.
        r: Golden rounded to `fmt`; narrow types are compared with it, since half an ulp of rounding is legitimate.
        step: `ulp(golden)`.
        compared: Elements that count.
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
    error = ((values - (g if fmt.wide else r))[kept] / step[kept]).clamp(-clip, clip)
    outward = error * torch.sign(g[kept])
    outward_error, upward_error = (float(item.std()) / count**0.5 for item in (outward, error))
    return Bias(
        count=count,
        distinct=min(distinct, DISTINCT),
        outward=float(outward.mean()),
        outward_error=outward_error,
        upward=float(error.mean()),
        upward_error=upward_error,
    )
