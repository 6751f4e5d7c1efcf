"""From three tensors to the few numbers of a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from opcheck.core.depicted import MOST_ELEMENTS
from opcheck.core.floats import FORMATS, round_to, ulp
from opcheck.core.pictures import ErrorMap, Histogram, Picture
from opcheck.core.policy import WIDE

MOST_CELLS = 64  # down, and across
LEAST_LINE = 16  # elements of a line in which a vector is written
LINEAR = 8.0  # the largest error, in its unit, that is still shown on a linear scale
BINS = 16  # on each side of 0, on a linear scale
MOST_DOUBLINGS = 24  # bins on each side of 0, on a scale of powers of two
JUST_BEYOND = 1.01  # the smallest number of two or three digits above 1
NOTHING = -1.0  # an element that cannot be judged, or none at all: below every error, so that a maximum leaves it out


@dataclass(frozen=True, slots=True, kw_only=True)
class Trio:
    """One tensor under three implementations, all float64 `[*S]`.

    Attributes:
        dtype: The target's element type.
        axes: Names of the axes; empty where they are not known.
        tiles: Sizes of tiles by name of an axis.
    """

    tensor: str
    target: Tensor
    reference: Tensor
    golden: Tensor
    dtype: str
    axes: tuple[str, ...] = ()
    tiles: Mapping[str, tuple[int, ...]] | None = None

    @property
    def rms(self) -> float:
        """The reference's RMS error over the elements where both are finite."""
        error = (self.reference - self.golden).reshape(-1)
        error = error[error.isfinite()]
        return float(error.square().mean().sqrt()) if error.numel() else 0.0


def pictures_of(trio: Trio, allowed: Tensor | float, unit: str) -> tuple[Picture, ...]:
    """Return the error map and, of floating-point tensors, the histogram of signed errors; nothing of a huge tensor.

    Args:
        allowed: What errors are counted in, a number or `[*S]`.
        unit: The same in words. Where nothing is allowed, an ulp of the largest golden takes its place.
    """
    if not 0 < trio.golden.numel() <= MOST_ELEMENTS:
        return ()
    if not isinstance(allowed, Tensor) and not allowed:
        largest = trio.golden.abs().nan_to_num(0.0, 0.0, 0.0).max()
        allowed, unit = float(ulp(largest, FORMATS[trio.dtype])), "an ulp of the largest |golden|"
    pictures: tuple[Picture, ...] = (error_map(trio, allowed, unit),)
    return (*pictures, histogram(trio)) if trio.dtype in FORMATS else pictures


def error_map(trio: Trio, allowed: Tensor | float, unit: str) -> ErrorMap:
    """Fold the errors over the last two axes and keep the largest one of each block."""
    lines, down, across, tile = _folded(trio, _errors(trio, allowed))
    extent = tuple(lines.shape)
    tile = tuple(step if step < size else 0 for step, size in zip(tile, extent, strict=True))
    block = tuple(1 << max(0, math.ceil(math.log2(size / MOST_CELLS))) for size in extent)
    cells = _blocks(lines, block)
    return ErrorMap(
        unit=unit, size=math.nan if isinstance(allowed, Tensor) else allowed, shape=tuple(trio.golden.shape),
        down=down, across=across, extent=extent, block=block, tile=tile,
        cells=tuple(tuple(_short(item) for item in line) for line in cells.tolist()),
    )  # fmt: skip


def histogram(trio: Trio) -> Histogram:
    """Count signed errors: of wide types in units of the reference's RMS error, of narrow ones in ulps of golden."""
    rms = trio.rms if trio.dtype in WIDE else 0.0
    unit = "the reference's RMS error" if rms else "ulp of golden"
    size = rms or ulp(trio.golden, FORMATS[trio.dtype])
    return counted([(trio.target - trio.golden) / size], [(trio.reference - trio.golden) / size], unit)


def counted(target: list[Tensor], reference: list[Tensor], unit: str) -> Histogram:
    """Count signed errors `[*S]` in bins that show them all: even ones, or doubling from half a unit on."""
    errors = [torch.cat([item.reshape(-1) for item in each]) for each in (target, reference)]
    finite = [item[item.isfinite()] for item in errors]
    reach = max((float(item.abs().max()) for item in finite if item.numel()), default=0.0)
    edges = _even(reach) if reach <= LINEAR else _doubling(reach)
    counts = [_counts(item, edges) for item in finite]
    return Histogram(unit=unit, edges=edges, target=counts[0], reference=counts[1])


def _errors(trio: Trio, allowed: Tensor | float) -> Tensor:
    """Return `|target - golden|` over what is allowed `[*S]`: Inf where one of them alone is not finite."""
    t, g = trio.target, trio.golden
    rounded = round_to(g, FORMATS[trio.dtype]) if trio.dtype in FORMATS else g
    alike = (t == g) | (t == rounded) | (t.isnan() & g.isnan())
    error = ((t - g).abs() / allowed).nan_to_num(nan=math.inf, posinf=math.inf)
    error = torch.where(alike, 0.0, error)
    # A gradient of golden that is NaN says nothing: it may stand at a kink.
    return torch.where(g.isnan(), NOTHING, error) if trio.tensor.startswith("grad ") else error


def _folded(trio: Trio, error: Tensor) -> tuple[Tensor, str, str, tuple[int, ...]]:
    """Return errors `[down, across]`, what the two directions are, and the tile's sizes."""
    names = trio.axes if len(trio.axes) == error.dim() else tuple(f"axis {at}" for at in range(error.dim()))
    known = {name: sizes[0] for name, sizes in (trio.tiles or {}).items() if len(sizes) == 1}
    if error.dim() < 2:
        return _wrapped(error.reshape(-1), names[0] if names else "", known.get(names[0], 0) if names else 0)
    down, across = names[-2:]
    lines = error.amax(dim=tuple(range(error.dim() - 2))) if error.dim() > 2 else error
    return lines, down, across, (known.get(down, 0), known.get(across, 0))


def _wrapped(error: Tensor, name: str, tile: int) -> tuple[Tensor, str, str, tuple[int, ...]]:
    """Write errors `[n]` in lines: of a tile each where its size is known, else about as many as one is long."""
    count = error.numel()
    width = tile if LEAST_LINE <= tile < count else max(LEAST_LINE, 1 << math.ceil(math.log2(count) / 2))
    if count <= MOST_CELLS and not LEAST_LINE <= tile < count:
        return error.reshape(1, -1), "", name, (0, tile)
    lines = -(-count // width)
    padded = torch.nn.functional.pad(error, (0, lines * width - count), value=NOTHING)
    return padded.reshape(lines, width), f"{name} // {width}", f"{name} % {width}", (0, 0)


def _blocks(lines: Tensor, block: tuple[int, ...]) -> Tensor:
    """Return the maximum of each block of `[down, across]`."""
    rows, cols = (-(-size // step) for size, step in zip(lines.shape, block, strict=True))
    missing = (0, cols * block[1] - lines.shape[1], 0, rows * block[0] - lines.shape[0])
    padded = torch.nn.functional.pad(lines, missing, value=NOTHING)
    return padded.reshape(rows, block[0], cols, block[1]).amax(dim=(1, 3))


def _short(value: float) -> float:
    """Return two digits of a value, on its own side of 1."""
    rounded = float(f"{value:.2g}")
    if value == NOTHING:
        return math.nan
    return max(rounded, JUST_BEYOND) if value > 1 else rounded


def _even(reach: float) -> tuple[float, ...]:
    """Return edges of bins of one width, a power of two, of which one has 0 in its middle."""
    width = 2.0 ** math.ceil(math.log2(reach / BINS)) if reach else 1.0
    side = max(1, math.ceil(reach / width - 0.5))
    return tuple((at - 0.5) * width for at in range(-side, side + 2))


def _doubling(reach: float) -> tuple[float, ...]:
    side = [2.0**at for at in range(-1, min(math.ceil(math.log2(reach)), MOST_DOUBLINGS) + 1)]
    return (*(-item for item in reversed(side)), *side)


def _counts(errors: Tensor, edges: tuple[float, ...]) -> tuple[int, ...]:
    inner = torch.tensor(edges[1:-1], dtype=errors.dtype, device=errors.device)
    return tuple(torch.bincount(torch.bucketize(errors, inner), minlength=len(edges) - 1).tolist())
