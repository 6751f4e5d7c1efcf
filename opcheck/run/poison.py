"""Hand out uninitialised memory that is visibly wrong, so that what is never written cannot look right by luck."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

NAN = 0xFF  # NaN in every float, -1 in every integer
LARGE = 0x7B  # large and finite in every float, large in every integer
LOW = 0xFB  # the same with a sign: far below 0 in every float and signed integer

Factory = Callable[..., Tensor]

#: What gives memory that nobody has written.
FACTORIES: tuple[tuple[Any, str], ...] = (
    (torch, "empty"),
    (torch, "empty_like"),
    (torch, "empty_strided"),
    (torch, "empty_permuted"),
    (torch.Tensor, "new_empty"),
    (torch.Tensor, "new_empty_strided"),
)


@contextlib.contextmanager
def poisoned(byte: int = NAN, allocated: Callable[[Tensor, int], None] | None = None) -> Iterator[None]:
    """Fill what Python code gets from `torch.empty*` with one byte: `NAN`, or `LARGE` for what drops NaN.

    Args:
        allocated: Is told of each such tensor `[*S]`, filled, and of the byte.
    """
    with replaced(FACTORIES, lambda factory: _filling(factory, byte, allocated)):
        yield


@contextlib.contextmanager
def replaced(functions: Iterable[tuple[Any, str]], wrap: Callable[[Factory], Factory]) -> Iterator[None]:
    """Put `wrap(function)` in the place of each function, an attribute of an object, and put them back afterwards."""
    before = [(owner, name, getattr(owner, name)) for owner, name in functions]
    try:
        for owner, name, function in before:
            setattr(owner, name, wrap(function))
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def fill_storage(out: Tensor, byte: int) -> None:
    """Fill all memory behind a tensor `[*S]` with one byte; booleans with True."""
    with torch.no_grad():
        if out.dtype is torch.bool:
            out.fill_(True)
        elif out.untyped_storage().nbytes():
            torch.tensor([], dtype=torch.uint8, device=out.device).set_(out.untyped_storage()).fill_(byte)


def _filling(factory: Factory, byte: int, allocated: Callable[[Tensor, int], None] | None) -> Factory:
    def empty(*args: Any, **kwargs: Any) -> Tensor:
        out = factory(*args, **kwargs)
        if out.device.type == "meta" or type(out) is not Tensor:
            return out
        fill_storage(out, byte)
        if allocated is not None:
            allocated(out, byte)
        return out

    return empty
