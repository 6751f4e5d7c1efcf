"""Follow integers that wrap into the pointers that are computed from them.

A signed integer of 32 bits or fewer that wraps keeps, beside its bits, the number that it should have been. What is
computed from it is computed from both, until they agree again: the low bits of a hash, or a difference whose terms both
wrap, are right. Other bits of it, and unsigned numbers, are taken for hashes, and not followed.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from opcheck.backends.interpreter.dtypes import Array
from opcheck.backends.interpreter.places import Place, place

#: The key in the attributes of a handle whose numbers, or addresses, are not what they should be.
WRAP = "opcheck.wrap"

_NARROW = frozenset(np.dtype(kind) for kind in (np.int8, np.int16, np.int32))
_UNSIGNED = frozenset(np.dtype(kind) for kind in (np.uint8, np.uint16, np.uint32))

Rule = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrap:
    """What numbers or addresses should be.

    Attributes:
        true: The right ones, `[*block]` of int64.
        place: Where the first of them wrapped.
    """

    true: Array
    place: Place


@contextlib.contextmanager
def followed() -> Iterator[None]:
    """Follow wraps in every interpreted kernel inside the block."""
    builder = interpreter.InterpreterBuilder
    before = {name: vars(builder)[name] for name in RULES}
    try:
        for name, rule in RULES.items():
            setattr(builder, name, rule(before[name]))
        yield
    finally:
        for name, function in before.items():
            setattr(builder, name, function)


def _wrapping(compute: Callable[[int, int], int], compute_all: Any) -> Rule:
    """Return the rule of an operation that may wrap."""

    def rule(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapping(self: Any, lhs: Any, rhs: Any) -> Any:
            result = function(self, lhs, rhs)
            if lhs.attr or rhs.attr:
                _follow(result, compute_all, lhs, rhs)
            elif result.data.dtype in _NARROW:
                if result.data.size == 1:
                    exact = compute(lhs.data.item(), rhs.data.item())
                    if exact != result.data.item():
                        _mark(result, np.full(result.data.shape, exact, np.int64), None)
                else:
                    _mark(result, compute_all(lhs.data, rhs.data, dtype=np.int64), None)
            return result

        return wrapping

    return rule


def _computed(compute: Callable[..., Array]) -> Rule:
    """Return the rule of an operation that cannot wrap, but that is computed from what may have wrapped."""

    def rule(function: Callable[..., Any]) -> Callable[..., Any]:
        def computed(self: Any, *handles: Any) -> Any:
            result = function(self, *handles)
            for handle in handles:
                if handle.attr:
                    _follow(result, compute, *handles)
                    break
            return result

        return computed

    return rule


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have the right numbers moved along with the wrapped ones: the operation changes shapes and nothing else."""

    def moved(self: Any, *args: Any) -> Any:
        result = function(self, *args)
        for at, arg in enumerate(args):
            if isinstance(arg, interpreter.TensorHandle) and (wrap := arg.attr.get(WRAP)) is not None:
                shadow = interpreter.TensorHandle(wrap.true, tl.int64)
                _mark(result, function(self, *args[:at], shadow, *args[at + 1 :]).data, wrap)
                break
        return result

    return moved


def _cast(function: Callable[..., Any]) -> Callable[..., Any]:
    """Follow a cast, and see where one to fewer bits loses some: that is as good as a wrap."""

    def cast(self: Any, src: Any, *args: Any) -> Any:
        result = function(self, src, *args)
        if (wrap := src.attr.get(WRAP)) is not None:
            _mark(result, wrap.true, wrap)
        elif result.data.dtype in _NARROW and src.data.dtype.itemsize > result.data.dtype.itemsize:
            _mark(result, src.data.astype(np.int64), None)
        return result

    return cast


def _pointing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Follow a wrapped offset into the addresses that it gives."""

    def create_addptr(self: Any, ptr: Any, offset: Any) -> Any:
        result = function(self, ptr, offset)
        wrap = ptr.attr.get(WRAP) or offset.attr.get(WRAP)
        if wrap is not None:
            width = max(1, ptr.get_element_ty().primitive_bitwidth // 8)
            _mark(result, _true(ptr) + width * _true(offset), wrap)
        return result

    return create_addptr


def _follow(result: Any, compute: Callable[..., Array], *handles: Any) -> None:
    """Compute what an operation gives on the right numbers."""
    wrap = next((found for handle in handles if (found := handle.attr.get(WRAP)) is not None), None)
    dtype = result.data.dtype
    if (wrap is not None or dtype in _NARROW) and dtype.kind in "iu" and dtype not in _UNSIGNED:
        _mark(result, compute(*map(_true, handles)), wrap)


def _mark(result: Any, true: Array, before: Wrap | None) -> None:
    if (true != result.data.astype(np.int64, copy=False)).any():
        where = place(sys._getframe(2)) if before is None else before.place
        result.attr[WRAP] = Wrap(true=true, place=where)


def _true(handle: Any) -> Array:
    wrap = handle.attr.get(WRAP)
    numbers: Array = handle.data if wrap is None else wrap.true
    return numbers if numbers.dtype == np.bool_ else numbers.astype(np.int64, copy=False)


def _divided(lhs: Array, rhs: Array) -> Array:
    quotient: Array = (lhs - np.fmod(lhs, rhs)) // rhs
    return quotient


#: What is done about each method of the builder.
RULES: dict[str, Rule] = {
    "create_add": _wrapping(operator.add, np.add),
    "create_sub": _wrapping(operator.sub, np.subtract),
    "create_mul": _wrapping(operator.mul, np.multiply),
    "create_sdiv": _computed(_divided),
    "create_srem": _computed(np.fmod),
    "create_and": _computed(np.bitwise_and),
    "create_minsi": _computed(np.minimum),
    "create_maxsi": _computed(np.maximum),
    "create_select": _computed(np.where),
    "create_int_cast": _cast,
    "create_addptr": _pointing,
    **dict.fromkeys(
        (
            *("create_splat", "create_unsplat", "create_broadcast", "create_expand_dims", "create_trans"),
            "create_reshape",
        ),
        _moved,
    ),
}
