"""Legal sizes: the nearest to one wished for, the representative shape, and what a backend can run."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator

from opcheck.core.case import LEADING, Dims
from opcheck.core.policy import Contract

OTHERS = (2, 3, 5)  # dimensions that are not reduced, the last ones: several programs, cheap, and no two alike
ODD = 129  # a reduced dimension: prime to every tile, one above a power of two
MANY_ROWS = 64
FEW_ROWS = 256  # in earnest there are more, and no kernel is built otherwise for them
BUILT_ELEMENTS = 1 << 20  # nothing runs at the shape for which kernels are built, but the inputs are drawn
EARNEST = 4096  # a dimension of an op without production shapes, in earnest
INTERPRETED_ELEMENTS = 1 << 16  # a shape with more is not run on the interpreter
INTERPRETED_SECONDS = 20.0  # nor one of which a case is expected to take longer: a worker may be silent for 60


def named(contract: Contract) -> tuple[str, ...]:
    """Return the dimensions that have names of their own: all but the leading ones."""
    return tuple(name for name in contract.dims if name != LEADING)


def legal(contract: Contract, name: str, size: int) -> int:
    """Return the legal size nearest to the one wished for, rounding up to a multiple."""
    if name in contract.sizes:
        return min(contract.sizes[name], key=lambda legal: (abs(legal - size), legal))
    low = contract.smallest.get(name, 1)
    size = max(low, min(size, contract.largest.get(name, size)))
    step = contract.multiple.get(name, 1)
    rounded = math.ceil(size / step) * step
    return rounded if rounded <= contract.largest.get(name, rounded) else (size // step) * step


def reduced(contract: Contract) -> frozenset[str]:
    """Return the dimensions along which the op reduces; the last one where the contract does not say."""
    return frozenset(contract.reduces or named(contract)[-1:])


def odd(contract: Contract) -> Dims:
    """Return the representative shape: odd sizes, several programs, cheap on the interpreter."""
    along = reduced(contract)
    others = [name for name in named(contract) if name not in along]
    sizes = (OTHERS[:1] * len(others) + OTHERS)[-len(others) :] if others else ()
    wanted = dict(zip(others, sizes, strict=True))
    return Dims({name: legal(contract, name, wanted.get(name, ODD)) for name in named(contract)})


def in_earnest(contract: Contract) -> Dims:
    """Return a shape that kernels are specialised for as for production's, small enough to be drawn.

    Every size is a multiple of 16 where that is legal, on which Triton's vector loads and pipelines depend; what is
    reduced is as long as in production as far as there is room.
    """
    usual = contract.production[0] if contract.production else {}
    sizes = {name: legal(contract, name, usual.get(name, EARNEST)) for name in named(contract)}
    along = reduced(contract)
    while math.prod(sizes.values()) > BUILT_ELEMENTS:
        halves = {name: legal(contract, name, max(16, size // 32 * 16)) for name, size in sizes.items()}
        smaller = [name for name in sizes if halves[name] < sizes[name]]
        many = [name for name in smaller if name not in along and sizes[name] > FEW_ROWS]
        if not smaller:
            break
        longest = max(many or smaller, key=lambda name: sizes[name])
        sizes[longest] = halves[longest]
    return Dims(sizes)


def runnable(
    shapes: Iterable[Dims],
    backend: str,
    missing: list[str],
    sampled: Collection[Dims] = (),
    cost: Callable[[Dims], float] = lambda dims: 0.0,
) -> Iterator[Dims]:
    """Yield each shape that the backend can run once; name the others in `missing`, and which of them are `sampled`."""
    for dims in dict.fromkeys(shapes):
        text = ", ".join(f"{name}={size}" for name, size in dims.items())
        if backend == "cpu" and cost(dims) > INTERPRETED_SECONDS and math.prod(dims.values()) <= INTERPRETED_ELEMENTS:
            missing.append(f"shape {text}: too many programs for the interpreter; audit it on a GPU")
        elif backend == "cpu" and math.prod(dims.values()) > INTERPRETED_ELEMENTS:
            some = " but for a sample of its programs in one dtype" if dims in sampled else ""
            missing.append(f"shape {text}: too large for the interpreter{some}; audit it on a GPU")
        else:
            yield dims
