"""Lay a tensor out in memory as a case says; the logical values stay."""

from __future__ import annotations

import torch
from torch import Tensor

from opcheck.core.layouts import FAR, layout
from opcheck.run.far import far

MARGIN = 3  # elements around a padded tensor: odd, so that rows are not aligned either


def revalued(name: str, value: Tensor) -> Tensor:
    """Return `value` `[*S]`, contiguous, with the values that the layout can hold: for every role alike."""
    if layout(name).same_values or not value.numel():
        return value
    if name == "ones":
        return torch.ones_like(value)
    if name == "zero":
        return torch.zeros_like(value)
    return value[:1].expand_as(value).contiguous() if value.dim() else value


def revalued_gradient(name: str, value: Tensor) -> Tensor:
    """Return an upstream gradient `[*S]` with the values that the layout can hold; expanded, it is one number."""
    if name != "expanded" or not value.numel():
        return revalued(name, value)
    return value.reshape(-1)[:1].expand(value.numel()).reshape(value.shape).contiguous()


def laid_out(name: str, value: Tensor, *, gradient: bool = False) -> Tensor:
    """Return the values of `value` `[*S]` in another memory layout; what the layout does not fit stays contiguous."""
    if value.dim() < layout(name).rank:
        return value
    if name == FAR:
        return far(value)
    if name == "transposed":
        return value.transpose(-1, -2).contiguous().transpose(-1, -2)
    if name == "channels_last":
        return value.contiguous(memory_format=torch.channels_last) if value.dim() == 4 else value
    if name == "padded":
        return _inside(value, MARGIN)
    if name == "offset":
        buffer = value.new_empty(value.numel() + 1)
        return buffer[1:].view(value.shape).copy_(value)
    if name == "narrowed":
        return torch.cat((value, value), dim=1)[:, value.shape[1] :]
    if name == "expanded" and value.dim() and value.numel():
        first = value.reshape(-1)[:1].reshape((1,) * value.dim()) if gradient else value[:1]
        return _apart(first).expand(value.shape)
    return value


def _apart(value: Tensor) -> Tensor:
    """Return a contiguous copy with poison behind it: what reads on does not find the same numbers again."""
    return _inside(value.reshape(-1), MARGIN)[: value.numel()].view(value.shape)


def _inside(value: Tensor, margin: int) -> Tensor:
    """Return a view with `margin` elements of poison on either side of the last dimension."""
    *rows, columns = value.shape
    buffer = value.new_empty((*rows, columns + 2 * margin))
    if value.dtype.is_floating_point:
        buffer.fill_(torch.nan)
    else:
        buffer.fill_(1 if value.dtype is torch.bool else 0)
    return buffer[..., margin : margin + columns].copy_(value)
