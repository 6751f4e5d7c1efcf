"""Scaled matmul of float8_e4m3fn in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample

from .kernel import OUTPUTS


def reference(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    scaling: str = "rowwise",
    out_dtype: str = "bfloat16",
) -> torch.Tensor:
    """Multiply in float32, in which products of fp8 are exact, scale, and round once."""
    return (a.float() @ b.float() * scale_a * scale_b).to(OUTPUTS[out_dtype])


def golden(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    scaling: str = "rowwise",
    out_dtype: str = "bfloat16",
) -> torch.Tensor:
    """Compute `(a @ b) * scale_a * scale_b`."""
    return a @ b * scale_a * scale_b


def samples(case: Case) -> Sample:
    """Draw a `[m, k]` and b `[k, n]`, and their scales in float32: `[m, 1]` and `[1, n]`, or `[1, 1]` each."""
    a, b = case.tensor("m", "k", name="a"), case.tensor("k", "n", name="b")
    scale_a = case.tensor("m", name="scale_a", dtype="float32")
    scale_b = case.tensor("n", name="scale_b", dtype="float32")
    if "tensorwise" in case.variant:
        scale_a, scale_b = scale_a.new_tensor([0.75]), scale_b.new_tensor([-1.5])
    return Sample(a, b, scale_a[:, None], scale_b[None, :])
