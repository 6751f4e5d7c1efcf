"""What is known of one storage while kernels run: which of its bytes the case gave, and which were ever written."""

from __future__ import annotations

import ctypes

import numpy as np
import torch
from torch import Tensor

from opcheck.backends.interpreter.dtypes import Array
from opcheck.backends.virtual import zeros

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Region:
    """One storage, by the addresses of its bytes.

    Args:
        tensor: Any view of it, `[*S]`; it is kept, so that the addresses are not handed out again.

    Attributes:
        start, size: Address and number of its bytes.
        own: The bytes that belong to tensors of the case, `[size]` of bool; None where all may be touched.
        written: The bytes that a kernel has written, `[size]` of bool; None where all count as written.
    """

    def __init__(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        self.start, self.size = storage.data_ptr(), storage.nbytes()
        self.own: Array | None = None
        self._whole = False
        self.written: Array | None = None
        self._kept = tensor.detach()
        self._poison, self._version, self._exact = 0, 0, True
        self._bytes: Array = np.zeros(0, np.uint8)
        if self.size:
            self._bytes = np.ctypeslib.as_array((ctypes.c_uint8 * self.size).from_address(self.start))

    def give(self, tensor: Tensor, *, whole: bool = False) -> None:
        """Count the elements of a tensor of the case as the case's own, or the `whole` storage, and as written."""
        self.written = None
        self._whole |= whole
        if self._whole:
            self.own = None
            return
        if self.own is None:
            self.own = zeros(self.size, np.bool_)
        size = tensor.element_size()
        self.own[: self.size // size * size].reshape(-1, size)[elements_of(tensor)] = True

    def poison(self, byte: int) -> None:
        """Count all bytes as unwritten: they hold `byte`, until somebody writes something else there.

        What is no float, or one byte wide, may be written to hold that very number by torch; there any write by torch
        counts for the whole.
        """
        dtype = self._kept.dtype
        self.written = zeros(self.size, np.bool_)
        self._poison = 1 if dtype is torch.bool else byte
        self._exact = dtype.is_floating_point and dtype.itemsize > 1
        self._version = _version(self._kept)

    def outside(self, offsets: Array, itemsize: int) -> Array | None:
        """Return which elements at byte offsets `[n]` are not the case's own, None where all are."""
        if self.own is None:
            return None
        wrong = ~(self.own[offsets] & self.own[offsets + (itemsize - 1)])
        return wrong if wrong.any() else None

    def unwritten(self, offsets: Array, itemsize: int) -> Array | None:
        """Return which elements at byte offsets `[n]` nobody has written, None where all are written."""
        if self.written is None:
            return None
        suspects = np.flatnonzero(~self.written[offsets])
        if not suspects.size:
            return None
        if not self._exact and _version(self._kept) != self._version:
            self.written = None
            return None
        bytes_of = offsets[suspects, None] + np.arange(itemsize)
        still = (self._bytes[bytes_of] == self._poison).all(1)
        wrong = np.zeros(offsets.shape, np.bool_)
        wrong[suspects[still]] = True
        return wrong if still.any() else None

    def write(self, offsets: Array, itemsize: int) -> None:
        """Count elements at byte offsets `[n]` as written."""
        if self.written is not None:
            for byte in range(itemsize):
                self.written[offsets + byte] = True

    def words(self, offsets: Array, itemsize: int) -> Array:
        """Return the bits at byte offsets `[n]` as they are now, as unsigned integers `[n]`."""
        if not self.start % itemsize and not (offsets % itemsize).any():
            whole = self._bytes[: self.size // itemsize * itemsize].view(_WORDS[itemsize])
            found: Array = whole[offsets // itemsize]
            return found
        rows = np.ascontiguousarray(self._bytes[offsets[:, None] + np.arange(itemsize)])
        return rows.view(_WORDS[itemsize])[:, 0]

    def holes(self, tensor: Tensor) -> Array:
        """Return the places of the elements of a view `[*S]` that nobody has written, in its order."""
        size = tensor.element_size()
        if self.written is None or not tensor.numel():
            return np.zeros(0, np.int64)
        wrong = self.unwritten(elements_of(tensor) * size, size)
        return np.zeros(0, np.int64) if wrong is None else np.flatnonzero(wrong)


def _version(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def elements_of(tensor: Tensor) -> Array:
    """Return where in its storage the elements of a tensor `[*S]` are, counted in elements, `[n]` in its order."""
    places = np.full((1,) * tensor.dim(), tensor.storage_offset(), np.int64)
    for axis, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        along = (1,) * axis + (size,) + (1,) * (tensor.dim() - axis - 1)
        places = places + (np.arange(size) * stride).reshape(along)
    return places.reshape(-1)
