"""Pointers remember the argument that they were computed from.

So what leaves an argument's memory is told even where it lands in that of another argument.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from triton.runtime import interpreter

#: The key in the attributes of a pointer's handle: the addresses of its argument's storage and of its first element.
ORIGIN = "opcheck.origin"

#: Whether the launch that runs has made pointers from integers; they lead to memory that nobody told of.
_computed = False


def computed() -> bool:
    """Say whether the launch that runs has made pointers from integers."""
    return _computed


@contextlib.contextmanager
def one_launch() -> Iterator[None]:
    """Be around one launch, which has made no pointers yet."""
    global _computed
    outer, _computed = _computed, False
    try:
        yield
    finally:
        _computed = outer


def replacements(keeping: Iterable[str]) -> Iterator[tuple[Any, str, Any]]:
    """Yield every place, attribute and new value; after operations in `keeping` a pointer has the origin it had."""
    builder = interpreter.InterpreterBuilder
    for name in keeping:
        yield builder, name, _keeping(getattr(builder, name))
    yield builder, "create_int_to_ptr", _computing(builder.create_int_to_ptr)
    yield interpreter.TensorDescHandle, "materialize_pointers", _materializing(
        interpreter.TensorDescHandle.materialize_pointers
    )  # fmt: skip


def _keeping(function: Callable[..., Any]) -> Callable[..., Any]:
    def kept(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        for value in (*args, *kwargs.values()):
            if isinstance(value, interpreter.TensorHandle) and ORIGIN in value.attr:
                _carry(value, result)
                break
        return result

    return kept


def _computing(function: Callable[..., Any]) -> Callable[..., Any]:
    def create_int_to_ptr(self: Any, src: Any, dst_type: Any) -> Any:
        global _computed
        _computed = True
        return function(self, src, dst_type)

    return create_int_to_ptr


def _materializing(function: Callable[..., Any]) -> Callable[..., Any]:
    def materialize_pointers(self: Any, offsets: Any) -> Any:
        pointers, masks = function(self, offsets)
        _carry(self.base, pointers)
        return pointers, masks

    return materialize_pointers


def _carry(source: Any, result: Any) -> None:
    if ORIGIN in source.attr and isinstance(result, interpreter.TensorHandle):
        result.attr[ORIGIN] = source.attr[ORIGIN]
