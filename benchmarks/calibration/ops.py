"""All ops of the calibration, in the order in which they run."""

from __future__ import annotations

from benchmarks.calibration import contraction, elementwise, norms, softmax, sums
from benchmarks.calibration.kernel import Op

OPS: tuple[Op, ...] = (
    softmax.SOFTMAX,
    softmax.CROSS_ENTROPY,
    norms.LAYER_NORM,
    norms.RMS_NORM,
    sums.SUM,
    sums.MEAN,
    contraction.LINEAR,
    elementwise.GELU,
    elementwise.GELU_TANH,
    elementwise.SILU,
    elementwise.SOFTPLUS,
    elementwise.SWIGLU,
    *elementwise.CASTS,
)


def ops_for(backend: str) -> tuple[Op, ...]:
    """Return the ops with the targets that exist on a backend: Triton's own on a GPU."""
    if backend != "cuda":
        return OPS
    try:
        from benchmarks.calibration.gpu import with_triton
    except ImportError:
        return OPS
    return with_triton(OPS)
