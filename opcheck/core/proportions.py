"""Statistics of counts and of means, as standard normal deviates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev, variance

SIGNIFICANT = 6.1  # standard normal deviates: both tails together are 1.1e-9
_LEAST = 1e-300  # probabilities below it are taken for it


def difference(kept: Sequence[int], other: Sequence[int], eligible: int) -> float:
    """Return how far the shares kept in two samples of runs are apart, in standard normal deviates, 0 or more.

    It is the smaller of two: the test of two proportions, which takes all elements for independent, and Welch's test of
    the runs' own shares, which does not, so that rows or channels that are dropped as one raise no alarm.

    Args:
        kept, other: Elements kept in each run, at least two runs each.
        eligible: Elements that each run might keep.
    """
    if not eligible:
        return 0.0
    whole = proportions(sum(kept), eligible * len(kept), sum(other), eligible * len(other))
    return min(whole, welch([count / eligible for count in kept], [count / eligible for count in other]))


def proportions(kept: int, total: int, other: int, beside: int) -> float:
    """Return |z| of `kept` of `total` against `other` of `beside`, their pooled share giving the variance.

    Where one of them is none or all, the normal approximation fails and Fisher's exact test takes its place.

    Source:
        Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions, 3rd ed., sections 3.1 and 3.2.
    """
    pooled = kept + other
    if pooled in (0, total + beside):
        return 0.0
    if kept in (0, total) or other in (0, beside):
        return _exact(kept, total, other, beside)
    share = pooled / (total + beside)
    return abs(kept / total - other / beside) / math.sqrt(share * (1 - share) * (1 / total + 1 / beside))


def welch(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the normal deviate of Welch's t of two samples of at least two numbers each, 0 or more.

    Infinite where neither sample varies and they differ.

    Source:
        Welch, Biometrika 34 (1947), 28-35, for t and its degrees of freedom; Wallace, Annals of Mathematical
        Statistics 30 (1959), 1121-1130, for its normal deviate, `(8 n + 1) / (8 n + 3) sqrt(n log(1 + t^2 / n))`.
    """
    gap = abs(fmean(first) - fmean(second))
    parts = variance(first) / len(first), variance(second) / len(second)
    if not sum(parts):
        return math.inf if gap else 0.0
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (len(first) - 1) + parts[1] ** 2 / (len(second) - 1))
    return _normal(gap / math.sqrt(sum(parts)), freedom)


def student(sample: Sequence[float]) -> float:
    """Return the normal deviate of the mean of a sample of at least two numbers from 0, 0 or more.

    Infinite where the sample does not vary and is not 0.
    """
    mean, spread = fmean(sample), stdev(sample)
    if not spread:
        return math.inf if mean else 0.0
    return _normal(mean / spread * math.sqrt(len(sample)), len(sample) - 1)


def _normal(t: float, freedom: float) -> float:
    """Return the normal deviate of Student's t, 0 or more (Wallace, as in `welch`)."""
    return (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p(t * t / freedom))


def _exact(kept: int, total: int, other: int, beside: int) -> float:
    """Return the deviate of the probability, doubled, that one group has all of the kept, or of the dropped, elements.

    Given how many there are, they lie in that group by chance with C(its size, them) / C(both sizes, them).
    """
    if kept == 0 or other == beside:
        few, inside = (other, beside) if kept == 0 else (total - kept, total)
    else:
        few, inside = (kept, total) if other == 0 else (beside - other, beside)
    log = _log_choose(inside, few) - _log_choose(total + beside, few)
    chance = max(_LEAST, min(1.0, 2 * math.exp(log)))
    return -NormalDist().inv_cdf(chance / 2)


def _log_choose(of: int, some: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)
