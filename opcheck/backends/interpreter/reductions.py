"""Reduce and scan in the operand's own dtype and by trees, as a GPU does.

A tree of depth log2(n) rounds after every addition in the dtype of its operands, so a sum that forgot to upcast shows
(an H200 reduces fp16 and bf16 in fp16 and bf16: measured), and a right one is as good as on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from opcheck.backends.interpreter.dtypes import FLOATS, Array

Blocks = tuple[Array, ...]
Combine = Callable[[Blocks, Blocks], Blocks]

_STANDARD = tl.standard
_PLAIN_REDUCE = interpreter.ReduceOps.generic_reduce
_PLAIN_SCAN = interpreter.ScanOps.generic_scan


class _NotElementwiseError(Exception):
    """A combine function asked for the truth of a whole block, so it must see one element at a time."""


def reduce_impl(self: Any, input: tuple[Any, ...]) -> Any:
    """Replace `ReduceOps.apply_impl`."""
    data, combine = input[0].handle.data, self.combine_fn
    if combine in (_STANDARD._argmax_combine_tie_break_left, _STANDARD._argmax_combine_tie_break_fast):
        return _extreme_with_index(self, input[0], np.fmax)
    if combine in (_STANDARD._argmin_combine_tie_break_left, _STANDARD._argmin_combine_tie_break_fast):
        return _extreme_with_index(self, input[0], np.fmin)
    if combine is _STANDARD._elementwise_max:
        return _folded(self, input[0], np.fmax.reduce)
    if combine is _STANDARD._elementwise_min:
        return _folded(self, input[0], np.fmin.reduce)
    if combine is _STANDARD._sum_combine:
        return _folded(self, input[0], _tree_sum if data.dtype in FLOATS else np.add.reduce)
    return _generic_reduce(self, input)


def scan_impl(self: Any, input: tuple[Any, ...]) -> Any:
    """Replace `ScanOps.apply_impl`."""
    blocks = tuple(arg.handle.data for arg in input)
    axis = self.axis % blocks[0].ndim
    if self.reverse:
        blocks = tuple(np.flip(block, axis) for block in blocks)
    if self.combine_fn is _STANDARD._sum_combine:
        scanned = _scan(blocks, axis, _elementwise(np.add))
    elif self.combine_fn is _STANDARD._prod_combine:
        scanned = _scan(blocks, axis, _elementwise(np.multiply))
    else:
        types = tuple(arg.dtype for arg in input)
        try:
            with _elementwise_only():
                scanned = _scan(blocks, axis, _combiner(self, types))
        except _NotElementwiseError:
            tensors = tuple(self.to_tensor(block, dtype) for block, dtype in zip(blocks, types, strict=True))
            scanned = tuple(result.handle.data for result in _PLAIN_SCAN(self, tensors))
    if self.reverse:
        scanned = tuple(np.flip(block, axis) for block in scanned)
    return [self.to_tensor(np.ascontiguousarray(b), arg.dtype) for b, arg in zip(scanned, input, strict=True)]


def _folded(self: Any, operand: Any, fold: Callable[..., Array], dtype: Any = None) -> Any:
    data, axis = operand.handle.data, self.axis
    if axis is None:
        result = fold(data.reshape(-1), axis=0)
        result = np.reshape(result, (1,) * data.ndim) if self.keep_dims else result
    else:
        result = fold(data, axis=axis)
        result = np.expand_dims(result, axis) if self.keep_dims else result
    return self.to_tensor(result, dtype or operand.dtype)


def _tree_sum(data: Array, axis: int) -> Array:
    """Add halves until one is left; each addition rounds to the dtype of `data`."""
    data = np.moveaxis(data, axis, 0)
    while (count := data.shape[0]) > 1:
        half = count // 2
        total = data[:half] + data[half : 2 * half]
        data = np.concatenate((total, data[2 * half :])) if count % 2 else total
    return data.reshape(data.shape[1:])


def _extreme_with_index(self: Any, operand: Any, pick: Any) -> tuple[Any, Any]:
    """Find the extreme, NaN dropped, and the first place where it stands; 0 where all are NaN."""

    def place(data: Array, axis: int) -> Array:
        places: Array = np.argmax(data == np.expand_dims(pick.reduce(data, axis=axis), axis), axis=axis)
        return places

    return _folded(self, operand, pick.reduce), _folded(self, operand, place, tl.int32)


def _generic_reduce(self: Any, input: tuple[Any, ...]) -> Any:
    types = tuple(arg.dtype for arg in input)
    blocks = tuple(arg.handle.data if self.axis is not None else arg.handle.data.reshape(-1) for arg in input)
    axis = 0 if self.axis is None else self.axis % blocks[0].ndim
    combine = _combiner(self, types)
    try:
        with _elementwise_only():
            while blocks[0].shape[axis] > 1:
                blocks = combine(_every_other(blocks, axis, 0), _every_other(blocks, axis, 1))
    except _NotElementwiseError:
        return _PLAIN_REDUCE(self, input)
    return [_packed(self, block, axis, arg) for block, arg in zip(blocks, input, strict=True)]


def _packed(self: Any, block: Array, axis: int, operand: Any) -> Any:
    if not self.keep_dims:
        return self.to_tensor(np.squeeze(block, axis), operand.dtype)
    return self.to_tensor(block.reshape((1,) * len(operand.shape)) if self.axis is None else block, operand.dtype)


def _scan(blocks: Blocks, axis: int, combine: Combine) -> Blocks:
    """Scan pairs, then fill in the places between them: depth 2 log2(n) (Blelloch 1990)."""
    count = blocks[0].shape[axis]
    if count == 1:
        return blocks
    even, odd = _every_other(blocks, axis, 0), _every_other(blocks, axis, 1)
    pairs = _scan(combine(even, odd), axis, combine)
    # A block's side is a power of two, so the first lane computes too, from a neighbour, and is then put right.
    shifted = tuple(np.take(p, np.maximum(np.arange(count // 2) - 1, 0), axis) for p in pairs)
    between = combine(shifted, even)
    first = _at(axis, slice(0, 1))
    for filled, original in zip(between, even, strict=True):
        filled[first] = original[first]
    return tuple(
        np.stack((b, p), axis + 1).reshape(block.shape) for b, p, block in zip(between, pairs, blocks, strict=True)
    )


def _at(axis: int, index: slice) -> tuple[slice, ...]:
    return (slice(None),) * axis + (index,)


def _every_other(blocks: Blocks, axis: int, start: int) -> Blocks:
    return tuple(block[_at(axis, slice(start, None, 2))] for block in blocks)


def _elementwise(operation: Callable[[Array, Array], Array]) -> Combine:
    return lambda left, right: tuple(operation(x, y) for x, y in zip(left, right, strict=True))


def _combiner(self: Any, types: tuple[Any, ...]) -> Combine:
    """Run the kernel's combine function on whole blocks; results return to the operands' dtypes."""

    def combine(left: Blocks, right: Blocks) -> Blocks:
        operands = [self.to_tensor(b, t) for side in (left, right) for b, t in zip(side, types, strict=True)]
        results = self.combine_fn.fn(*operands)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(self.to_tensor(_data(r), t).handle.data for r, t in zip(results, types, strict=True))

    return combine


def _data(result: Any) -> Any:
    return result.handle.data if isinstance(result, tl.tensor) else result


@contextmanager
def _elementwise_only() -> Iterator[None]:
    """Refuse the truth of a block: the interpreter would answer True for it, and pick one branch for all lanes."""
    plain = tl.tensor.__bool__

    def truth(tensor: Any) -> bool:
        if tensor.handle.data.size > 1:
            raise _NotElementwiseError
        return bool(tensor.handle.data)

    tl.tensor.__bool__ = truth
    try:
        yield
    finally:
        tl.tensor.__bool__ = plain
