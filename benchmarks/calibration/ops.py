"""All ops of the calibration, in the order in which they run."""

from __future__ import annotations

from dataclasses import replace

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
    # There aten's layer norm sums in FP32 whatever the element type.
    ops = tuple(replace(op, coarse={}) if op is norms.LAYER_NORM else op for op in OPS)
    try:
        from benchmarks.calibration.gpu import with_triton
    except ImportError:
        return ops
    return with_triton(ops)
