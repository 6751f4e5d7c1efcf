"""Put bands of a pattern around tensors and around what an op allocates, so that stores beside them can be seen.

Torch code without a device of its own: on the CPU it watches kernels that no interpreter sees.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from opcheck.core.guards import Side, Trespass
from opcheck.core.measure import dtype_name
from opcheck.run.failure import calling_line
from opcheck.run.poison import FACTORIES, Factory, fill_storage, replaced

#: Bytes on either side, from `LEAST` to `MOST`: a row of the tensor, since a kernel that forgets a mask runs over by a
#: part of a block, which is seldom longer than a row, and one that takes a wrong stride by a row. 4 KiB are a block of
#: 1024 floats, which elementwise kernels use; 1 MiB keeps the memory of large cases within bounds.
LEAST, MOST = 4096, 1 << 20
#: Bytes to which torch's CUDA allocator aligns; its CPU one aligns to 64. Kernels may be specialised by it.
ALIGNMENT = 512
_PERIOD = 16  # bytes: every element size divides it

#: `nan`: NaN in every float, -1 in integers. `numbers`: finite and different around each tensor, so that a kernel which
#: copies one band into another is seen too; small in integers, so that an index read from a band leads nowhere far.
Pattern = Literal["nan", "numbers"]

_WRITTEN: tuple[tuple[Any, str], ...] = (
    *((torch, name) for name in ("zeros", "ones", "full", "rand", "randn", "randint")),
    *((torch, f"{name}_like") for name in ("zeros", "ones", "full", "rand", "randn", "randint")),
    *((torch.Tensor, name) for name in ("new_zeros", "new_ones", "new_full", "contiguous", "clone")),
)
_PLAIN_EMPTY = torch.empty


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ring:
    """A tensor between its bands: `buffer` is `[band + size + band]` bytes, and what rounds them up."""

    name: str
    buffer: Tensor
    band: int
    size: int
    itemsize: int
    start: int  # bytes from the first of the storage to the tensor's first element
    pattern: Tensor  # `[16]` bytes, repeated

    def wrong(self, side: Side) -> Tensor:
        """Return which bytes of a band have changed, `[band]`."""
        band = self.buffer[: self.band] if side == "before" else self.buffer[self.band + self.size :]
        phase = 0 if side == "before" else self.size % _PERIOD
        expected = self.pattern.repeat(band.numel() // _PERIOD + 2)[phase : phase + band.numel()]
        return band != expected


class Guards:
    """The bands of one run.

    Args:
        bands: What they hold.
        poison: The byte that `torch.empty*` gives out in the op's own code.

    Attributes:
        count: How many tensors of the case have bands.
        allocated: How many tensors that the op made have them.
    """

    def __init__(self, *, bands: Pattern, poison: int) -> None:
        self._bands, self._poison = bands, poison
        self._rings: list[_Ring] = []
        self._unwritten: set[int] = set()
        # Arguments may share memory, and do so between bands: the storage that was copied, kept alive, and its copy.
        self._copies: dict[int, tuple[Tensor, _Ring]] = {}
        self._busy = False
        self.count = self.allocated = 0

    def given(self, name: str, tensor: Tensor) -> Tensor:
        """Return a tensor `[*S]` of the same values, layout and need of a gradient, between bands."""
        if not _bandable(tensor):
            return tensor
        self.count += 1
        known = self._copies.get(_address(tensor))
        if known is None:
            banded = self._banded(name, tensor.detach())
            self._copies[_address(tensor)] = tensor, self._rings[-1]
        else:
            banded = _placed(known[1], tensor)
        return banded.requires_grad_(tensor.requires_grad)

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Put bands around what Python code allocates by factories of torch, and poison into `torch.empty*`."""
        with replaced(FACTORIES, self._allocating(poison=True)), replaced(_WRITTEN, self._allocating(poison=False)):
            yield

    def poisoned(self, tensor: Tensor) -> Tensor:
        """Return which elements of a tensor `[*S]`, flat, lie in memory of `torch.empty*` and still are the poison.

        Of booleans none: there it is an ordinary value.
        """
        if tensor.dtype is torch.bool or _address(tensor) not in self._unwritten:
            return torch.zeros(tensor.numel(), dtype=torch.bool, device=tensor.device)
        flat = tensor.detach().contiguous().reshape(-1)
        return (flat.view(torch.uint8).view(flat.numel(), -1) == self._poison).all(1)

    def trespasses(self) -> tuple[Trespass, ...]:
        """Return the bands that somebody has written into; each device is asked once, for one bit of each band."""
        sides: tuple[Side, ...] = ("before", "behind")
        found = []
        for device in dict.fromkeys(ring.buffer.device for ring in self._rings):
            if device.type == "cuda":
                torch.cuda.synchronize(device)  # a kernel may run on a stream of its own
            bands = [(ring, side) for ring in self._rings if ring.buffer.device == device for side in sides]
            touched = torch.stack([ring.wrong(side).any() for ring, side in bands]).tolist()
            found += [_trespass(ring, side) for (ring, side), wrong in zip(bands, touched, strict=True) if wrong]
        return tuple(found)

    def _allocating(self, *, poison: bool) -> Callable[[Factory], Factory]:
        def wrap(factory: Factory) -> Factory:
            def allocate(*args: Any, **kwargs: Any) -> Tensor:
                out = factory(*args, **kwargs)
                if self._busy or torch.compiler.is_compiling():  # one of the calls below, or a compiler that traces
                    return out
                if kwargs.get("out") is not None or not _bandable(out) or out.grad_fn is not None or _shared(out, args):
                    return out
                self._busy = True
                try:
                    return self._allocated(out, poison)
                finally:
                    self._busy = False

            return allocate

        return wrap

    def _allocated(self, out: Tensor, poison: bool) -> Tensor:
        if poison:
            fill_storage(out, self._poison)
        self.allocated += 1
        line = calling_line()
        form = f"{dtype_name(out.dtype)} {list(out.shape)}"
        name = f"allocation {self.allocated}, {form}" + (f" at {line}" if line else "")
        banded = self._banded(name, out.detach()).requires_grad_(out.requires_grad)
        if poison:
            self._unwritten.add(_address(banded))
        return banded

    def _banded(self, name: str, tensor: Tensor) -> Tensor:
        storage, itemsize = tensor.untyped_storage(), tensor.element_size()
        size, band = storage.nbytes(), band_of(tensor)
        with torch.no_grad():
            buffer = _PLAIN_EMPTY(band + size + -size % _PERIOD + band, dtype=torch.uint8, device=tensor.device)
            pattern = _pattern(self._bands, len(self._rings), tensor.dtype, tensor.device)
            buffer.view(-1, _PERIOD).copy_(pattern)
            buffer[band : band + size] = _bytes(tensor)
        ring = _Ring(
            name=name, buffer=buffer, band=band, size=size, itemsize=itemsize, pattern=pattern,
            start=int(tensor.storage_offset()) * itemsize,
        )  # fmt: skip
        self._rings.append(ring)
        return _placed(ring, tensor)


def band_of(tensor: Tensor) -> int:
    """Return the bytes of a band beside a tensor `[*S]`: a row, within bounds, a multiple of the alignment."""
    row = tensor.shape[-1] * tensor.element_size() if tensor.dim() else 0
    return min(max(-(-row // ALIGNMENT) * ALIGNMENT, LEAST), MOST)


def _placed(ring: _Ring, tensor: Tensor) -> Tensor:
    """Return a tensor that lies in a ring's copy of its storage as `tensor` lies in the storage; no view of another."""
    with torch.no_grad():
        out = _PLAIN_EMPTY(0, dtype=tensor.dtype, device=tensor.device)
        first = ring.band // tensor.element_size() + int(tensor.storage_offset())
        return out.set_(ring.buffer.untyped_storage(), first, tensor.shape, tensor.stride())


def _pattern(bands: Pattern, number: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the 16 bytes that fill the bands of the tensor with this number."""
    if bands == "nan" or dtype is torch.bool:
        return torch.full((_PERIOD,), 0xFF if bands == "nan" else 0, dtype=torch.uint8, device=device)
    if dtype.is_floating_point or dtype.is_complex:
        # 0x40 to 0x7A repeated are finite in every float, above 2 in all of them, and never what poison.LARGE is.
        return torch.full((_PERIOD,), 0x40 + number % 0x3B, dtype=torch.uint8, device=device)
    return torch.full((_PERIOD // dtype.itemsize,), 1 + number % 100, dtype=dtype, device=device).view(torch.uint8)


def _trespass(ring: _Ring, side: Side) -> Trespass:
    places = ring.wrong(side).nonzero()
    nearest = int(places[-1]) - ring.band if side == "before" else int(places[0]) + ring.size
    return Trespass(
        tensor=ring.name,
        side=side,
        offset=(nearest - ring.start) // ring.itemsize,
        count=places.numel(),
        band=ring.band,
    )


def _bandable(tensor: Tensor) -> bool:
    """Say whether there can be bands around a tensor; one without elements has no address, whatever is behind it."""
    if type(tensor) is not Tensor or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return False
    plain = tensor.layout is torch.strided and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
    known = tensor.device.type == "cuda" or (tensor.device.type == "cpu" and not tensor.is_pinned())
    return plain and known and tensor.numel() > 0


def _shared(out: Tensor, args: tuple[Any, ...]) -> bool:
    """Say whether a factory gave back the memory that it was called with, as `contiguous` may."""
    given = args[0] if args and isinstance(args[0], Tensor) else None
    return given is not None and type(given) is Tensor and _address(given) == _address(out)


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _bytes(tensor: Tensor) -> Tensor:
    """Return the bytes of a tensor's whole storage, as a view."""
    return _PLAIN_EMPTY(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
