"""Wrong answers that a careless kernel could give: an input handed back, another output, another gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import Tensor

from opcheck.run.roles import Run


def nearest_decoy(name: str, golden: Run) -> tuple[str, float]:
    """Return the wrong answer nearest to golden's tensor `name`, and how far it is in the unit of the tensor.

    A tolerance wider than that distance could not tell the two apart. Inf where there is none of the same shape. The
    gradients of a sum's terms are one and the same: one that golden itself has in the place of another is not wrong.
    """
    value = golden.tensors[name]
    if not value.dtype.is_floating_point or not value.numel():
        return "", math.inf
    others = _candidates(name, value, golden)
    found = [(label, _distance(value, other)) for label, other in others if not _same_gradient(name, value, other)]
    return min(found, key=lambda item: item[1], default=("", math.inf))


def _candidates(name: str, value: Tensor, golden: Run) -> Iterator[tuple[str, Tensor]]:
    pools = (golden.gradients,) if name.startswith("grad ") else (golden.inputs, golden.outputs)
    for pool in pools:
        for label, other in pool.items():
            if label != name and other is not None and other.shape == value.shape and other.dtype == value.dtype:
                yield label, other


def _same_gradient(name: str, value: Tensor, other: Tensor) -> bool:
    return name.startswith("grad ") and value.equal(other)


def _distance(left: Tensor, right: Tensor) -> float:
    apart = (left - right).abs()
    finite = apart.isfinite()
    return float(apart[finite].max()) if bool(finite.any()) else math.inf
