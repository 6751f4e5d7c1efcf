"""How often a right kernel would be failed: quantiles, and the upper tail carried on beyond what was seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

TAIL = 0.01  # share of the comparisons that the fit is made to
FEWEST = 20  # comparisons in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Distribution of measured over allowed.

    Attributes:
        exponential: Rate of alarms per comparison if log(measured/allowed) goes on exponentially above its 99 %
            quantile; nan where the tail holds too few.
        pareto: The same by a generalized Pareto distribution fitted by moments, which may end before 1 (rate 0).
    """

    count: int
    median: float
    q99: float
    q999: float
    largest: float
    alarms: int
    exponential: float
    pareto: float

    def as_dict(self) -> dict[str, float | str]:
        """Return JSON's view: numbers that are not finite as strings."""
        return {key: value if math.isfinite(value) else str(value) for key, value in asdict(self).items()}


def summary(ratios: Sequence[float]) -> Summary:
    """Summarize the ratios `[n]` of one group.

    Source:
        Hosking and Wallis, Parameter and Quantile Estimation for the Generalized Pareto Distribution, Technometrics 29
        (1987), section 3, for the fit by moments.
    """
    values = np.asarray(ratios, dtype=np.float64)
    median, q99, q999 = (float(item) for item in np.quantile(values, (0.5, 0.99, 0.999), method="inverted_cdf"))
    exponential, pareto = _rates(values)
    return Summary(
        count=len(values), median=median, q99=q99, q999=q999, largest=float(values.max()),
        alarms=int((values > 1.0).sum()), exponential=exponential, pareto=pareto,
    )  # fmt: skip


def _rates(values: np.ndarray) -> tuple[float, float]:
    count = max(int(len(values) * TAIL), FEWEST)
    top = np.sort(values)[-count - 1 :]
    if len(values) < 10 * FEWEST or top[0] <= 0.0 or not np.isfinite(top[-1]):
        return math.nan, math.nan
    threshold = math.log(top[0])
    over = np.log(top[1:]) - threshold
    mean, variance, share = float(over.mean()), float(over.var()), count / len(values)
    if threshold >= 0.0:
        return float((values > 1.0).mean()), float((values > 1.0).mean())
    if mean <= 0.0 or variance <= 0.0:
        return 0.0, 0.0
    shape = 0.5 * (1.0 - mean * mean / variance)
    scale = 0.5 * mean * (1.0 + mean * mean / variance)
    inside = 1.0 - shape * threshold / scale
    pareto = 0.0 if inside <= 0.0 else inside ** (-1.0 / shape) if shape else math.exp(threshold / scale)
    return share * math.exp(threshold / mean), share * pareto
