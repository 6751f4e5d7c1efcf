"""Hand out uninitialised memory that is visibly wrong, so that what is never written cannot look right by luck."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

NAN = 0xFF  # NaN in every float, -1 in every integer
LARGE = 0x7B  # large and finite in every float, large in every integer
LOW = 0xFB  # the same with a sign: far below 0 in every float and signed integer

_FACTORIES: tuple[tuple[Any, str], ...] = (
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
    before = [(owner, name, getattr(owner, name)) for owner, name in _FACTORIES]
    try:
        for owner, name, factory in before:
            setattr(owner, name, _filling(factory, byte, allocated))
        yield
    finally:
        for owner, name, factory in before:
            setattr(owner, name, factory)


def _filling(
    factory: Callable[..., Tensor], byte: int, allocated: Callable[[Tensor, int], None] | None
) -> Callable[..., Tensor]:
    def empty(*args: Any, **kwargs: Any) -> Tensor:
        out = factory(*args, **kwargs)
        if out.device.type == "meta" or type(out) is not Tensor:
            return out
        storage = out.untyped_storage()
        with torch.no_grad():
            if out.dtype is torch.bool:
                out.fill_(True)
            elif storage.nbytes():
                torch.tensor([], dtype=torch.uint8, device=out.device).set_(storage).fill_(byte)
        if allocated is not None:
            allocated(out, byte)
        return out

    return empty
