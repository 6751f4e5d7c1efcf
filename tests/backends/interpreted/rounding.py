"""Rounding to nearest by search among all values of a type: shares nothing with the code under test."""

import ml_dtypes
import numpy as np

DTYPES = {
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float16": np.dtype(np.float16),
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
#: The number after the largest finite one, were the exponent unbounded: at the middle before it overflow begins.
NEXT = {"bfloat16": 2.0**128, "float16": 65536.0}


def nearest(values, name):
    """Round FP64 `values` to the type `name`: ties to the even pattern, fp8 saturating, the others to Inf."""
    dtype = DTYPES[name]
    count = 2 ** (8 * dtype.itemsize - 1)
    with np.errstate(invalid="ignore"):  # a signalling NaN is no error here
        values = np.asarray(values, np.float64)
        ladder = np.arange(count).astype(f"u{dtype.itemsize}").view(dtype).astype(np.float64)
    ladder = ladder[np.isfinite(ladder)]
    top = ladder[-1]
    if name in NEXT:
        ladder = np.append(ladder, NEXT[name])
    magnitude = np.minimum(np.abs(values), ladder[-1])
    upper = np.clip(np.searchsorted(ladder, magnitude), 1, len(ladder) - 1)
    middle = (ladder[upper - 1] + ladder[upper]) / 2
    up = (magnitude > middle) | ((magnitude == middle) & (upper % 2 == 0))
    rounded = np.where(up, ladder[upper], ladder[upper - 1])
    rounded = np.where(rounded > top, np.inf, rounded)
    return np.where(np.isnan(values), np.nan, np.copysign(rounded, values))
