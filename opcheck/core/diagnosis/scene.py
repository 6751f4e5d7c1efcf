"""What is known of a wrong tensor, and how well a candidate for what the target computed explains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from opcheck.core.floats import FORMATS, round_to

FEWEST = 8  # elements beside the fitted parameters: fewer can be fitted by something by chance
CARRYING = 2.5  # elements that carry the error
LEFT_OUT = 4  # elements of the largest error, a quarter of all at most
FINITE = 0.9  # share of the wrong elements that must be finite for their values to be compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """What the target may have done.

    Attributes:
        score: 0 to 1; for a candidate, the share of the squared error that it explains.
        text: A sentence to follow "looks like: ".
    """

    score: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """The target, run again with one thing changed.

    Attributes:
        change: What was changed, in words that end "right when ...".
        error: `max|target - golden|` of that run, over its own threshold.
    """

    change: str
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A tensor too far from golden, with what there is to compare it with; all tensors are float64.

    Attributes:
        tensor: Its name in reports.
        target, reference, golden: The three answers, `[*S]`.
        wrong: Mask of the elements that are too far from golden, `[*S]`.
        dtype: The target's element type.
        axes: Names of the axes, numbered where they are not known.
        dims: Sizes of the case by name.
        named: Inputs, golden's outputs and gradients, and upstream gradients, by what a report calls them.
        tiles: Tile sizes of each named dimension that are known from launches or declared.
        narrowed: Golden of inputs that were rounded, by what was rounded to what.
        reruns: What became right.
        growth: Relative RMS error of the target by reduction length, shortest first.
    """

    tensor: str
    target: Tensor
    reference: Tensor
    golden: Tensor
    wrong: Tensor
    dtype: str
    axes: tuple[str, ...] = ()
    dims: Mapping[str, int] = field(default_factory=dict)
    named: Mapping[str, Tensor] = field(default_factory=dict)
    tiles: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    narrowed: Mapping[str, Tensor] = field(default_factory=dict)
    reruns: tuple[Rerun, ...] = ()
    growth: tuple[tuple[int, float], ...] = ()

    def explained(
        self, candidate: Tensor, parameters: int = 0, *, at: Tensor | None = None, fewest: int = FEWEST
    ) -> float:
        """Return the share of the squared error of target against golden that goes away with a candidate `[*S]`.

        The candidate is rounded to the target's element type first. Each fitted parameter costs one degree of freedom.
        The share must also hold without the largest errors, so that a few elements cannot be fitted by chance.

        Args:
            at: Mask of the elements to look at, `[*S]`; all that are finite in all three otherwise.
            fewest: Elements that must be left beside the parameters.
        """
        if not self.wrong.any() or float(self.target[self.wrong].isfinite().double().mean()) < FINITE:
            return 0.0
        rounded = round_to(candidate.double().expand_as(self.golden), FORMATS[self.dtype])
        kept = self.target.isfinite() & self.golden.isfinite() & rounded.isfinite()
        kept = kept if at is None else kept & at
        before = (self.target - self.golden)[kept].square()
        after = (self.target - rounded)[kept].square()
        free = len(before) - parameters
        if free < fewest or carrying(before) < CARRYING:
            return 0.0
        few = max(1, min(LEFT_OUT, len(before) // 4))
        rest = before.argsort()[:-few]
        left = max(_share(after, before), _share(after[rest], before[rest]))
        return max(0.0, 1.0 - left * len(before) / free)

    @property
    def error(self) -> Tensor:
        """`target - golden`, 0 where it is not finite."""
        return (self.target - self.golden).nan_to_num(0.0, 0.0, 0.0)

    def axis(self, at: int) -> str:
        """Return the name of an axis."""
        return self.axes[at] if len(self.axes) == self.golden.dim() else f"axis {at}"

    def fitting(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the named tensors that broadcast to the tensor's shape, as they are or along its last axes."""
        for name, value in self.named.items():
            shaped = _broadcast(value, self.golden.shape)
            if name != self.tensor and shaped is not None and bool(shaped.isfinite().all()):
                yield name, shaped


def _share(after: Tensor, before: Tensor) -> float:
    total = float(before.sum())
    return float(after.sum()) / total if total else 1.0


def carrying(squares: Tensor) -> float:
    """Return how many elements carry a sum of squares: `(sum s)^2 / sum s^2`, 1 for a single one."""
    total = float(squares.square().sum())
    return float(squares.sum()) ** 2 / total if total else 0.0


def distinct(values: Tensor) -> int:
    """Return how many different numbers there are."""
    return len(torch.unique(values))


def fitted(of: Tensor, to: Tensor) -> float:
    """Return the least-squares coefficient c of `of * c = to`; 0 where `of` is 0."""
    scale = float(of.square().sum())
    return float((of * to).sum()) / scale if scale else 0.0


def _broadcast(value: Tensor, shape: torch.Size) -> Tensor | None:
    if value.numel() < 2 or value.dim() > len(shape):
        return None
    for form in (value.shape, (*value.shape, *(1,) * (len(shape) - value.dim()))):
        try:
            return value.reshape(form).expand(shape)
        except RuntimeError:
            continue
    return None
