"""Indexing and masks: a tail tile, stripes, a transposed, shifted, reversed or repeated copy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import torch
from torch import Tensor

from opcheck.core.diagnosis.scene import FEWEST, Hypothesis, Scene

LEAST_TILE, LONGEST = 4, 1 << 16
LEAST_SHARE = 0.75  # of an axis that a shifted copy still overlaps


def indexing(scene: Scene) -> Iterator[Hypothesis]:
    """Yield what the places of the errors suggest, then which other elements of golden the target holds."""
    for axis in range(scene.golden.dim()):
        if LEAST_TILE < scene.golden.shape[axis] <= LONGEST:
            yield from _tail(scene, axis)
            yield from _stripes(scene, axis)
    yield from _transposed(scene)
    for axis in range(scene.golden.dim()):
        if 2 <= scene.golden.shape[axis] <= LONGEST:
            yield from _moved(scene, axis)
            yield from _repeated(scene, axis)


def _tail(scene: Scene, axis: int) -> Iterator[Hypothesis]:
    """Errors in the last, partial tile alone; the score is 1 less the chance that random places all fall there."""
    size, name = scene.golden.shape[axis], scene.axis(axis)
    hit = _along(scene.wrong, axis).nonzero().reshape(-1)
    if not len(hit):
        return
    first = int(hit[0])
    declared = [tile for tile in scene.tiles.get(name, ()) if first >= size // tile * tile > 0 and size % tile]
    guessed = [] if declared or not first else [first & -first]
    for tile in (*declared, *(item for item in guessed if item >= LEAST_TILE and size - first < item)):
        share = (size % tile) / size
        chance = share ** int(scene.wrong.sum())
        how = f"{name} % {tile} = {size % tile}" + ("" if declared else f", as a tile of {tile} would leave")
        text = f"the tail of {name} ({how}): the last tile is not masked, or its bound is off"
        yield Hypothesis(score=1.0 - max(chance, share if len(hit) < 2 and size < 32 else 0.0) / 2, text=text)


def _stripes(scene: Scene, axis: int) -> Iterator[Hypothesis]:
    """Whole blocks of indices, or the same indices of each block: the score is how well the mask is that pattern."""
    hit, name = _along(scene.wrong, axis), scene.axis(axis)
    size = len(hit)
    period = 2
    while period * 2 <= size:
        rows = hit[: size // period * period].reshape(-1, period)
        common, blocks = rows.all(0), rows.all(1)
        if (
            0 < int(common.sum()) <= period // 2
            and len(rows) > 2
            and torch.equal(common.repeat(len(rows) + 1)[:size], hit)
        ):
            which = common.nonzero().reshape(-1).tolist()
            span = f"{which[0]} to {which[-1]}" if len(which) > 1 else f"{which[0]}"
            text = f"a stripe of period {period} along {name} (index % {period} is {span}): one lane of each tile"
            yield Hypothesis(score=1.0 - 2.0**-size, text=text)
            return
        period *= 2
    while period > LEAST_TILE:
        period //= 2
        rows = hit[: size // period * period].reshape(-1, period)
        blocks, rest = rows.all(1), hit[len(rows) * period :]
        some = 0 < int(blocks.sum()) < len(rows)
        if some and torch.equal(blocks, rows.any(1)) and (not len(rest) or bool(rest.all() == rest.any())):
            which = blocks.nonzero().reshape(-1).tolist()
            if which[-1] == len(rows) - 1 or (len(rest) and bool(rest.any())):
                return  # the tail
            said = f"block {which[0]}" if len(which) == 1 else f"{len(which)} blocks, the first is {which[0]}"
            text = f"whole blocks of {period} along {name} ({said}): a program that is skipped, repeated or overwritten"
            yield Hypothesis(score=0.97, text=text)
            return


def _transposed(scene: Scene) -> Iterator[Hypothesis]:
    golden = scene.golden
    for a, b in combinations(range(golden.dim()), 2):
        swapped = golden.transpose(a, b)
        how = f"{scene.axis(a)} and {scene.axis(b)}"
        if min(golden.shape[a], golden.shape[b]) > 1:
            text = f"golden with {how} transposed: two indices or strides are swapped"
            yield Hypothesis(score=scene.explained(swapped.reshape(golden.shape)), text=text)
            back = golden.reshape(swapped.shape).transpose(a, b)
            yield Hypothesis(score=scene.explained(back), text=text)


def _moved(scene: Scene, axis: int) -> Iterator[Hypothesis]:
    golden, name = scene.golden, scene.axis(axis)
    size = golden.shape[axis]
    yield Hypothesis(score=scene.explained(golden.flip(axis)), text=f"golden with {name} in reverse order")
    for shift in _shifts(scene.target, golden, axis):
        index = torch.arange(size, device=golden.device)
        inside = (index >= shift) & (index < size + shift)
        form = [-1 if other == axis else 1 for other in range(golden.dim())]
        at = inside.reshape(form).expand_as(golden)
        if float(inside.double().mean()) < LEAST_SHARE and size > LEAST_TILE:
            at = torch.ones_like(at)
        score = scene.explained(golden.roll(shift, axis), 1, at=at)
        text = f"golden shifted by {shift} along {name}: an offset or a bound that is off by {abs(shift)}"
        yield Hypothesis(score=score, text=text)


def _shifts(target: Tensor, golden: Tensor, axis: int) -> list[int]:
    """Return the shift with the highest circular correlation, from minus half the size to half of it; none for 0."""
    size = golden.shape[axis]
    t, g = (item.nan_to_num(0.0, 0.0, 0.0) for item in (target, golden))
    spectrum = torch.fft.rfft(t, dim=axis) * torch.fft.rfft(g, dim=axis).conj()
    match = torch.fft.irfft(spectrum, n=size, dim=axis)
    others = tuple(other for other in range(golden.dim()) if other != axis)
    best = int((match.sum(others) if others else match).argmax())
    return [] if not best else [best if best <= size // 2 else best - size]


def _repeated(scene: Scene, axis: int) -> Iterator[Hypothesis]:
    """One index of an axis in the place of all, or its first tile in the place of the others."""
    golden, name = scene.golden, scene.axis(axis)
    size = golden.shape[axis]
    for at, which in ((0, "first"), (size - 1, "last")):
        text = f"golden of the {which} of {name} in every {name}: its index or offset is not added"
        yield Hypothesis(score=scene.explained(golden.narrow(axis, at, 1)), text=text)
    tile = 2
    while tile < size and golden.numel() >= FEWEST:
        index = torch.arange(size, device=golden.device) % tile
        text = f"golden's first {tile} along {name} again and again: the number of the program is not used"
        yield Hypothesis(score=scene.explained(golden.index_select(axis, index)), text=text)
        tile *= 2


def _along(wrong: Tensor, axis: int) -> Tensor:
    others = tuple(other for other in range(wrong.dim()) if other != axis)
    return wrong.any(dim=others) if others else wrong
