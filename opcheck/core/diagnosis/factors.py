"""A constant factor, named where it has a name; a tensor that is multiplied in once too often or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from opcheck.core.diagnosis.scene import FEWEST, Hypothesis, Scene, fitted

SAME = 2e-3  # relative: a factor that is measured on rounded values
USABLE = 0.9  # share of the wrong elements at which a tensor is large enough to divide by
SURE = 0.999  # score of a factor that few elements show
SMALL = 1e-12  # of a tensor's largest element: below it nothing can be divided by it


def factors(scene: Scene) -> Iterator[Hypothesis]:
    """Yield the factor to golden, then factors that are named tensors or lack one."""
    target, golden = scene.target.nan_to_num(0.0, 0.0, 0.0), scene.golden.nan_to_num(0.0, 0.0, 0.0)
    c = fitted(golden[scene.wrong], target[scene.wrong])
    if c:
        name = named_factor(c, scene.dims)
        text = f"golden times {c:.4g} throughout: {name or 'a constant factor'}"
        score = scene.explained(golden * c, 1, at=scene.wrong, fewest=2)
        yield Hypothesis(score=score if score > SURE or int(scene.wrong.sum()) > FEWEST else 0.0, text=text)
    for name, value in scene.fitting():
        usable = value.abs() > SMALL * value.abs().max()
        varies = not bool((value == value.reshape(-1)[0]).all())
        if name.startswith("grad ") or not varies or float(usable[scene.wrong].double().mean()) < USABLE:
            continue
        without = golden / value.where(usable, value.new_ones(()))
        first = value.reshape(-1)[0]
        text = f"{name}[0] in the place of all of {name}: it is read as a scalar"
        yield Hypothesis(score=scene.explained(without * first, at=usable), text=text)
        if value.dim() > 1:
            text = f"the first {name} of each row in the place of all of the row"
            yield Hypothesis(score=scene.explained(without * value[..., :1], at=usable), text=text)
        yield Hypothesis(score=scene.explained(without, at=usable), text=f"golden without the factor {name}")
        yield Hypothesis(score=scene.explained(golden * value), text=f"golden times {name}: one factor too many")
        yield Hypothesis(score=scene.explained(without / value.where(usable, value.new_ones(())), at=usable),
                         text=f"golden over {name} squared: divided where it should be multiplied")  # fmt: skip


def named_factor(c: float, dims: Mapping[str, int]) -> str:
    """Return what a factor is, in words; empty where it is no usual one."""
    known = {
        "the sign": -1.0,
        "added twice": 2.0,
        "a missing factor 2": 0.5,
        "one part of four": 0.25,
        "sqrt(2)": math.sqrt(2),
        "1 / sqrt(2)": math.sqrt(0.5),
        "ln 2": math.log(2),
        "1 / ln 2": 1 / math.log(2),
    }
    for name, size in dims.items():
        if size < 3:
            continue
        known |= {
            f"{name} = {size}": size, f"1 / {name} = 1 / {size}": 1 / size,
            f"sqrt({name} = {size})": math.sqrt(size), f"1 / sqrt({name} = {size})": 1 / math.sqrt(size),
            f"({name} - 1) / {name} with {name} = {size}": (size - 1) / size,
            f"{name} / ({name} - 1) with {name} = {size}": size / (size - 1),
            f"sqrt(({name} - 1) / {name}) with {name} = {size}": math.sqrt((size - 1) / size),
            f"sqrt({name} / ({name} - 1)) with {name} = {size}": math.sqrt(size / (size - 1)),
        }  # fmt: skip
        padded = 1 << (size - 1).bit_length()
        if padded != size:
            known[f"{name} over its padded size, {size} / {padded}"] = size / padded
    close = {name: abs(c / value - 1) for name, value in known.items()}
    name = min(close, key=lambda item: close[item])
    near = min(SAME, 0.1 * abs(abs(known[name]) - 1)) if known[name] != -1 else SAME
    return name if close[name] <= near else ""
