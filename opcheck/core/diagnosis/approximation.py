"""Another function in the place of the right one: a known approximation, or an error that is a smooth curve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor
from torch.nn import functional

from opcheck.core.diagnosis.scene import Hypothesis, Scene, carrying, distinct

LEAST = 32  # points on a curve
BEND = 0.1  # of the RMS: beyond it the curve is compressed

#: What a reader would call it, and what it computes of a named tensor.
FUNCTIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "the tanh approximation of GELU": lambda x: functional.gelu(x, approximate="tanh"),
    "GELU with erf": lambda x: functional.gelu(x),
    "x * sigmoid(1.702 x), the quick GELU,": lambda x: x * torch.sigmoid(1.702 * x),
    "SiLU": functional.silu,
    "ReLU": functional.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "2^x": torch.exp2,
    "1 / sqrt": torch.rsqrt,
}


def approximations(scene: Scene) -> Iterator[Hypothesis]:
    """Yield known functions of a named tensor, then how smooth the error is as a function of one."""
    inputs = [(name, value) for name, value in scene.named.items()
              if value.shape == scene.golden.shape and name != scene.tensor]  # fmt: skip
    for name, value in inputs:
        for function, compute in FUNCTIONS.items():
            yield Hypothesis(score=scene.explained(compute(value)), text=f"{function} of {name}")
    error = scene.error.reshape(-1)
    relative = (scene.error / scene.golden.abs()).nan_to_num(0.0, 0.0, 0.0).reshape(-1)
    for name, value in (*inputs, (f"{scene.tensor} itself", scene.golden)):
        order = value.reshape(-1).argsort()
        text = f"the error is a smooth curve over {name}: an approximated function, or another formula, not rounding"
        for curve in (relative, error):
            yield Hypothesis(score=_smooth(curve[order], value.reshape(-1)[order]), text=text)


def _smooth(curve: Tensor, at: Tensor) -> float:
    """Return 1 less half of von Neumann's ratio (1941): 1 for a curve, 0 for noise."""
    if distinct(at) < LEAST or carrying(curve.square()) < LEAST / 4:
        return 0.0
    curve = (curve / (BEND * curve.square().mean().sqrt())).asinh()  # noise stays noise, and a steep end a curve
    steps = (curve[1:] - curve[:-1]).square().sum()
    spread = 2.0 * (curve - curve.mean()).square().sum()
    return max(0.0, 1.0 - float(steps / spread)) if float(spread) > 0 else 0.0
