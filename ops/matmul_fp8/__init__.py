"""`ops::matmul_fp8`: a scaled product of two float8_e4m3fn matrices."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::matmul_fp8", reference=reference, golden=golden, samples=samples)
def matmul_fp8(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    scaling: str = "rowwise",
    out_dtype: str = "bfloat16",
) -> torch.Tensor:
    """Compute `(a @ b) * scale_a * scale_b` for a `[m, k]` and b `[k, n]` of float8_e4m3fn, in `out_dtype`.

    scaling is `"rowwise"`, a scale for each row of a and each column of b: `[m, 1]` and `[1, n]`, as
    `ops::quantize_fp8` gives them; or `"tensorwise"`, one for each tensor: `[1, 1]`. Scales are float32, the result is
    `"bfloat16"` or `"float32"`. There is no backward: gradients do not fit into fp8, and who trains in it quantizes
    them, too, by scales of their own.
    """
    return kernel.forward(a, b, scale_a, scale_b, scaling, out_dtype)


@matmul_fp8.register_fake
def _(a, b, scale_a, scale_b, scaling="rowwise", out_dtype="bfloat16"):
    return a.new_empty(a.shape[0], b.shape[1], dtype=kernel.OUTPUTS[out_dtype])
