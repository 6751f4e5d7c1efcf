"""Spread a small tensor over more than 2^31 elements of memory, of which only its own is ever touched."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from opcheck.backends.virtual import mapped
from opcheck.errors import BadCase

LIMIT = 1 << 31  # elements: an offset as large does not fit into 32 bits
_ALIGNED = 64  # elements


def far(value: Tensor) -> Tensor:
    """Return `value` `[*S]` with one long stride; what has no dimension of 2 or more before its last stays.

    It is the stride of the longest such dimension, the first of equals. Each index along it fits into 32 bits, and so
    does the stride where the dimension has 3 or more; from the middle index on their product does not.

    Raises:
        BadCase: This machine does not give as much address space.
    """
    leading = value.shape[:-1]
    longest = max(leading, default=0)
    if longest < 2 or not value.numel():
        return value
    along = leading.index(longest)
    first = 1 if longest == 2 else max(2, (longest - 1) // 2)
    stride = (math.ceil(LIMIT / first) // _ALIGNED + 1) * _ALIGNED
    compact = value.select(along, 0).contiguous().stride()
    strides = (*compact[:along], stride, *compact[along:])
    count = (longest - 1) * stride + value.numel() // longest
    try:
        memory = mapped(count * value.element_size())
    except (OSError, OverflowError) as error:
        raise BadCase(f"{count * value.element_size()} bytes of address space cannot be mapped: {error}") from error
    buffer = torch.frombuffer(memory, dtype=value.dtype, count=count)
    return buffer.as_strided(value.shape, strides).copy_(value)


def is_far(tensor: Tensor) -> bool:
    """Say whether a tensor has next to nothing of a storage that must not be touched as a whole."""
    size = tensor.untyped_storage().nbytes()
    return size >= LIMIT and tensor.numel() * tensor.element_size() * 1024 < size
