"""Watch tensors that a run must leave alone, with all the memory that they are views of."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from opcheck.core.behaviour import Changed
from opcheck.run.far import is_far

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    name: str
    tensor: Tensor
    memory: Tensor
    writable: bool


class Keeps(Protocol):
    """What is told of a run's tensors, when they are drawn or made."""

    def keep(self, name: str, tensor: Tensor, *, writable: bool = False, given: bool = True) -> None:
        """Hear of a tensor `[*S]`; the op may write into it, it was given to the op or made by it."""


class Watch:
    """Copies of tensors' memory, to be compared with it later, bit for bit."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []

    @property
    def count(self) -> int:
        """How many tensors are watched."""
        return len(self._kept)

    def keep(self, name: str, tensor: Tensor, *, writable: bool = False, given: bool = True) -> None:
        """Remember a tensor `[*S]`; of a `writable` one only the memory around it must stay.

        Around a far tensor nobody looks but the observer, who sees every store there.
        """
        if tensor.layout is torch.strided and tensor.untyped_storage().nbytes():
            alias = tensor.detach()
            self._kept.append(_Kept(name=name, tensor=alias, memory=_memory(alias).clone(), writable=writable))

    def holds(self, tensor: Tensor) -> bool:
        """Say whether a tensor shares its memory with one that is watched."""
        address = tensor.untyped_storage().data_ptr()
        return any(kept.tensor.untyped_storage().data_ptr() == address for kept in self._kept)

    def drop(self, named: Watch) -> None:
        """Forget what `named` watches too, under a name that says more."""
        self._kept = [kept for kept in self._kept if not named.holds(kept.tensor)]

    def changed(self) -> tuple[Changed, ...]:
        """Return what is no longer as it was."""
        return tuple(found for kept in self._kept if (found := _difference(kept)) is not None)

    def untouched(self) -> tuple[str, ...]:
        """Return the writable tensors that are still as they were."""
        return tuple(
            kept.name for kept in self._kept if kept.writable and torch.equal(_memory(kept.tensor), kept.memory)
        )


@contextlib.contextmanager
def saved_into(watch: Watch) -> Iterator[None]:
    """Have everything that autograd saves watched from then on."""

    def pack(tensor: Tensor) -> Tensor:
        watch.keep(f"saved tensor {watch.count}", tensor)
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield


def _memory(tensor: Tensor) -> Tensor:
    """Return the bytes of a tensor's whole storage, as a view; a copy of its own ones where it is far."""
    if is_far(tensor):
        return tensor.contiguous().reshape(-1).view(torch.uint8)
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def _difference(kept: _Kept) -> Changed | None:
    now = _memory(kept.tensor)
    if torch.equal(now, kept.memory):
        return None
    view, size = kept.tensor, kept.tensor.element_size()
    word = _WORDS.get(size)
    whole = kept.memory.numel() // size * size
    if word is None or not view.numel():
        return _around(kept, now)

    def seen(memory: Tensor, dtype: torch.dtype) -> Tensor:
        if is_far(view):
            return memory.view(dtype).view(view.shape)
        return memory[:whole].view(dtype).as_strided(view.shape, view.stride(), view.storage_offset())

    wrong = seen(now, word) != seen(kept.memory, word)
    if kept.writable or not bool(wrong.any()):
        return _around(kept, now)
    index = tuple(int(at) for at in wrong.nonzero()[0])
    return Changed(
        tensor=kept.name,
        count=int(wrong.sum()),
        total=view.numel(),
        index=index,
        before=float(seen(kept.memory, view.dtype)[index]),
        after=float(view[index]),
    )


def _around(kept: _Kept, now: Tensor) -> Changed | None:
    """Return what changed in the memory that is not the tensor's own."""
    if is_far(kept.tensor):
        return None
    wrong = now != kept.memory
    view, size = kept.tensor, kept.tensor.element_size()
    own = torch.zeros_like(wrong)
    if view.numel():
        places = torch.arange(own.numel() // size, device=own.device)
        places = places.as_strided(view.shape, view.stride(), view.storage_offset()).reshape(-1)
        own[: own.numel() // size * size].view(-1, size)[places] = True
    wrong &= ~own
    if not bool(wrong.any()):
        return None
    first = int(wrong.nonzero()[0]) // size - int(view.storage_offset())
    return Changed(tensor=kept.name, count=int(wrong.sum()), total=view.numel(), index=None, place=first)
