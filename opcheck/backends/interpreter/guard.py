"""Keep interpreted kernels inside the memory that they were given, in every run.

A lane that leaves its argument's memory would read or break what belongs to the process itself: the answer would depend
on what lies there, and the process might die of it. Such a load gives `other` or 0, and such a store does nothing.
`opcheck.backends.interpreter.observer` tells of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from opcheck.backends.interpreter import origins
from opcheck.backends.interpreter.dtypes import Array
from opcheck.backends.interpreter.launch import tensors_of
from opcheck.backends.interpreter.memory import Access

#: Sizes in bytes of the storages that the launch that runs was given, by their addresses; None outside of any launch.
_storages: dict[int, int] | None = None


@contextlib.contextmanager
def launched(executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
    """Be around one launch."""
    global _storages
    outer, _storages = _storages, {}
    try:
        for _, tensor in tensors_of(executor, args, kwargs):
            storage = tensor.untyped_storage()
            _storages[storage.data_ptr()] = storage.nbytes()
        yield
    finally:
        _storages = outer


def see(access: Access) -> Array:
    """Return the lanes of an access's mask that stay in the memory of the argument that they come from."""
    if _storages is None:
        return access.mask
    pointers = access.pointers
    if access.origin is None or access.origin[0] not in _storages:
        return access.mask & _within_any(pointers, access.itemsize) if _storages else access.mask
    start = access.origin[0]
    last = start + _storages[start] - access.itemsize
    if start <= pointers.min() and pointers.max() <= last:
        return access.mask
    found: Array = access.mask & (pointers >= start) & (pointers <= max(last, 0))
    return found


def _within_any(pointers: Array, itemsize: int) -> Array:
    """Say of pointers `[*block]` of unknown origin which lead into an argument, as far as that can be said."""
    if origins.computed():
        return np.ones(pointers.shape, np.bool_)
    within = np.zeros(pointers.shape, np.bool_)
    for start, size in (_storages or {}).items():
        within |= (pointers >= start) & (pointers <= max(start + size - itemsize, 0))
    return within
