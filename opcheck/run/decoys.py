"""Wrong answers that a careless kernel could give: an input handed back, another output, another gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import Tensor

from opcheck.run.roles import Run


def nearest_decoy(name: str, golden: Run) -> tuple[str, float]:
    """Return the wrong answer nearest to golden's tensor `name`, and how far it is in the unit of the tensor.

    A tolerance wider than that distance could not tell the two apart. Inf where there is none of the same shape.
    """
    value = golden.tensors[name]
    if not value.dtype.is_floating_point or not value.numel():
        return "", math.inf
    found = [(label, _distance(value, other)) for label, other in _candidates(name, value, golden)]
    return min(found, key=lambda item: item[1], default=("", math.inf))


def _candidates(name: str, value: Tensor, golden: Run) -> Iterator[tuple[str, Tensor]]:
    pools = (golden.gradients,) if name.startswith("grad ") else (golden.inputs, golden.outputs)
    for pool in pools:
        for label, other in pool.items():
            if label != name and other is not None and other.shape == value.shape and other.dtype == value.dtype:
                yield label, other


def _distance(left: Tensor, right: Tensor) -> float:
    apart = (left - right).abs()
    finite = apart.isfinite()
    return float(apart[finite].max()) if bool(finite.any()) else math.inf
