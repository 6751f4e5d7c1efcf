"""Errors per slice: one outlier row must not blind the comparison of all the others."""

from __future__ import annotations

import torch
from torch import Tensor

from opcheck.core.formats import Format
from opcheck.core.measured import AxisSlices

SHORTEST = 32  # elements; the maximum over fewer is one draw of noise
SMALLEST_SCALE = 2.0**-12  # of the tensor's: a fibre smaller than this is held to this
TRIGGER = 0.10  # a fibre where reference or floor is further off than this of its scale is not judged


def slices_of(
    target_error: Tensor, reference_error: Tensor, magnitude: Tensor, shape: tuple[int, ...], fmt: Format, scale: float
) -> tuple[AxisSlices, ...]:
    """Reduce absolute errors `[numel]` of a tensor of `shape` to maxima over its fibres, axis by axis.

    Args:
        target_error: `|target - golden|`, 0 where not judged.
        reference_error: `|reference - golden|`, 0 where not judged.
        magnitude: `|golden|`, 0 where not judged.
        shape: Shape of the tensor; rank 2 and more have slices.
        fmt: The tensor's number format.
        scale: `max|golden|` of the tensor, in its unit.
    """
    if len(shape) < 2 or not scale:
        return ()
    axes = (axis for axis, size in enumerate(shape) if size >= SHORTEST)
    return tuple(
        _along(axis, target_error.view(shape), reference_error.view(shape), magnitude.view(shape), fmt, scale)
        for axis in axes
    )


def slice_scale(largest: Tensor, scale: float) -> Tensor:
    """Return the scale `[*F]` to which fibres are held, given their largest `|golden|` `[*F]` and the tensor's."""
    return largest.clamp_min(SMALLEST_SCALE * scale)


def slice_floor(scale: Tensor, fmt: Format) -> Tensor:
    """Return the error of one rounding in fibres of that scale `[*F]`."""
    return fmt.unit * scale + fmt.smallest_subnormal / 2


def _along(axis: int, error_t: Tensor, error_f: Tensor, magnitude: Tensor, fmt: Format, scale: float) -> AxisSlices:
    worst_t, worst_f, size = (item.amax(dim=axis) for item in (error_t, error_f, magnitude))
    s = slice_scale(size, scale)
    f = slice_floor(s, fmt)
    quotient = (worst_f - f).clamp_min(0.0) / s
    judged = (quotient <= TRIGGER) & (f <= TRIGGER * s)
    nothing = torch.zeros_like(s)
    target = torch.where(judged, (worst_t - 2 * f).clamp_min(0.0) / s, nothing)
    at = int(target.argmax())
    index = [int(part) for part in torch.unravel_index(torch.tensor(at), s.shape)] if s.dim() else []
    index.insert(axis, -1)
    pick = s.reshape(-1)[at], f.reshape(-1)[at], worst_t.reshape(-1)[at], target.reshape(-1)[at]
    s_at, f_at, error_at, quotient_at = (float(item) for item in pick)
    return AxisSlices(
        axis=axis,
        length=error_t.shape[axis],
        judged_share=float(judged.double().mean()),
        reference_quotient=float(torch.where(judged, quotient, nothing).max()),
        target_quotient=quotient_at,
        worst=tuple(index),
        worst_error=error_at,
        worst_scale=s_at,
        worst_floor=f_at,
    )
