"""What runs between guard bands show: stores beside a tensor, results that depend on memory nobody wrote, kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Side = Literal["before", "behind"]
Source = Literal["bands", "poison"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """Run the target with bands of a pattern around what it is given and allocates, once for each of two patterns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trespass:
    """Somebody wrote into the band beside a tensor.

    Attributes:
        tensor: The argument, `"grad:<output>"` for an upstream gradient, or `"allocation <n>"` with form and line.
        offset: The changed byte nearest to the tensor, in elements from its first one.
        count: Changed bytes of the band.
        band: Bytes of the band: what lies further away is not watched.
    """

    tensor: str
    side: Side
    offset: int
    count: int
    band: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Swayed:
    """A result changes its bits with what the bands hold, or with what `torch.empty` gives out.

    Attributes:
        offset: The first such element of the flattened result.
        count, total: Such elements, and all of them.
        nan_only: Whether repeated runs differ anyway, so that only NaN that comes with a pattern of NaN counts.
    """

    tensor: str
    by: Source
    offset: int
    count: int
    total: int
    nan_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritten:
    """A result holds the poison of `torch.empty` after either run: `count` of `total` elements, from `offset` on."""

    tensor: str
    offset: int
    count: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """How often a Triton kernel was launched with a grid; `()` where only its name is known."""

    kernel: str
    grid: tuple[int, ...]
    count: int

    def __str__(self) -> str:
        grid = f" {list(self.grid)}" if self.grid else ""
        return f"{self.kernel}{grid} x {self.count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """How often a device kernel ran below a torch operator, the innermost one; empty where there was none."""

    name: str
    op: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Banded:
    """Answer to `Guarded`.

    Attributes:
        given, allocated: How many tensors had bands: those of the case, and those that the op made.
        launches: Launches of Triton kernels in one run.
        kernels: Device kernels of one run, where no Triton kernel was launched; None where they were not counted.
        unseen: Why they were not, where they should have been.
    """

    given: int = 0
    allocated: int = 0
    launches: tuple[Launched, ...] = ()
    kernels: tuple[Kernel, ...] | None = None
    unseen: str = ""
    trespasses: tuple[Trespass, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    swayed: tuple[Swayed, ...] = ()


def own_kernels(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Return the kernels that are not PyTorch's own: neither below an operator of ATen nor named as ATen's.

    A library's kernel (cuBLAS, CUTLASS, CUB) is the op's own where the op calls the library, and PyTorch's where ATen
    does: the operator tells, the name does not.
    """
    return tuple(item for item in kernels if not (item.op.startswith(_ATEN_OPS) or _named_as_atens(item.name)))


_ATEN_OPS = ("aten::", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad")
_ATEN_NAMES = ("at::native::", "at::cuda::", "at_cuda_detail::")


def _named_as_atens(name: str) -> bool:
    bare = name.removeprefix("void ")
    return bare.startswith(("Memcpy", "Memset", *_ATEN_NAMES)) or any(f" {part}" in name for part in _ATEN_NAMES)


def counted(kernels: Iterable[tuple[str, str]]) -> tuple[Kernel, ...]:
    """Return kernels, given by name and operator, with how often each occurs, in the order of their first."""
    found: dict[tuple[str, str], int] = {}
    for key in kernels:
        found[key] = found.get(key, 0) + 1
    return tuple(Kernel(name=name, op=op, count=count) for (name, op), count in found.items())


def launched(grids: Mapping[tuple[str, tuple[int, ...]], int], hooked: Mapping[str, int]) -> tuple[Launched, ...]:
    """Return all launches: those whose grid was recorded, and those that only Triton's launch hook told of.

    Args:
        grids: How often each kernel, `module.qualname`, was launched with each grid.
        hooked: How often Triton's hook was called for each compiled kernel, by the name in its binary.
    """
    found = [Launched(kernel=kernel, grid=grid, count=count) for (kernel, grid), count in grids.items()]
    if sum(hooked.values()) > sum(grids.values()):
        known = {kernel.rpartition(".")[2] for kernel, _ in grids}
        found += [Launched(kernel=name, grid=(), count=count) for name, count in hooked.items() if name not in known]
    return tuple(found)
