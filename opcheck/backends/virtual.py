"""Memory that takes address space only: what nobody touches costs nothing."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

LARGE = 1 << 30  # bytes; what is larger is mapped, and not counted as promised memory
_NEEDED = 1 << 35  # bytes that a case with far tensors may map at once
_UNCOUNTED = 0x4000  # MAP_NORESERVE on Linux, which Python names from 3.13 on


def mapped(size: int) -> mmap.mmap:
    """Map `size` bytes of zeros, private and writable.

    Raises:
        OSError: This machine does not give as much address space.
    """
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNCOUNTED)


def zeros(count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros `[count]`, of which only those that are written take memory."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer(mapped(size), dtype) if size > LARGE else np.zeros(count, dtype)


def refused() -> str:
    """Return why this machine does not give the address space that far tensors need; empty where it does."""
    try:
        mapped(_NEEDED).close()
    except (OSError, ValueError, OverflowError) as error:
        return f"{_NEEDED >> 30} GiB of address space cannot be mapped here: {error}"
    return ""
