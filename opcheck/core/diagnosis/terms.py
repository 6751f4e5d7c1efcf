"""A term that is missing or too much: the residual is a named tensor, a product of two, or a statistic."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from torch import Tensor

from opcheck.core.diagnosis.scene import Hypothesis, Scene, fitted

MOST_NAMED = 10
LEAST_ALONG = 4  # elements for each fitted number


def terms(scene: Scene) -> Iterator[Hypothesis]:
    """Yield a constant, single tensors, products of two, then one number for each row, alone or times a tensor."""
    error, golden = scene.error, scene.golden.nan_to_num(0.0, 0.0, 0.0)
    c = float(error.mean())
    yield Hypothesis(score=scene.explained(golden + c, 1), text=f"golden {c:+.4g} throughout: a constant is added")
    fitting = [(name, value) for name, value in scene.fitting() if not bool((value == golden).all())][:MOST_NAMED]
    products = [(f"{a} * {b}", u * v) for (a, u), (b, v) in combinations(fitting, 2)]
    squares = [(f"{name}^2", value * value) for name, value in fitting]
    for name, value in (*fitting, *squares, *products):
        c = fitted(value, error)
        yield Hypothesis(score=scene.explained(golden + c * value, 1), text=_missing(c, name))
    for axis in range(golden.dim()):
        along = golden.shape[axis]
        if along < LEAST_ALONG or golden.numel() == along:
            continue
        groups, name = golden.numel() // along, scene.axis(axis)
        mean = error.mean(axis, keepdim=True)
        text = f"golden and one number for all of {name}: a sum or mean over {name} is missing or wrong"
        yield Hypothesis(score=scene.explained(golden + mean, groups), text=text)
        for other, value in fitting:
            text = (
                f"golden and {other} times one number for all of {name}: a sum or mean over {name} is missing or wrong"
            )
            yield Hypothesis(score=scene.explained(golden + value * _each(value, error, axis), groups), text=text)


def _each(value: Tensor, error: Tensor, axis: int) -> Tensor:
    scale = value.square().sum(axis, keepdim=True)
    return (value * error).sum(axis, keepdim=True) / scale.where(scale > 0, scale.new_ones(()))


def _missing(c: float, name: str) -> str:
    factor = "" if abs(abs(c) - 1.0) < 1e-3 else f"{abs(c):.4g} * "
    return f"the term {factor}{name} is missing" if c < 0 else f"the term {factor}{name} is too much"
