"""Formulas that several packages have kernels of: goldens, references that round once, and samples."""

import torch

from opcheck import Case, Sample


def largest(x):
    """Return the maximum of each row, as a constant: the shift by it cancels."""
    return x.detach().amax(-1, keepdim=True) if x.shape[-1] else 0


def softmax_golden(x):
    """Compute `exp(x - max) / sum(exp(x - max))`."""
    e = torch.exp(x - largest(x))
    return e / e.sum(-1, keepdim=True)


class RoundedSoftmax(torch.autograd.Function):
    """Softmax in float32 whose backward starts from the rounded output, which is what is kept."""

    @staticmethod
    def forward(ctx, x):
        y = softmax_golden(x.float()).to(x.dtype)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        y, dy = ctx.saved_tensors[0].float(), grad.float()
        return (y * (dy - (dy * y).sum(-1, keepdim=True))).to(grad.dtype)


def rms_norm_golden(x, weight, eps=1e-6):
    """Compute `x / sqrt(mean(x^2) + eps) * weight`."""
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rms_norm_reference(x, weight, eps=1e-6):
    """Do the same in float32 and round once."""
    return rms_norm_golden(x.float(), weight.float(), eps).to(x.dtype)


def rms_norm_samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]` and weight `[cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"), case.tensor("cols", name="weight"), eps=1e-6)


def fused_add_rms_norm_golden(x, residual, weight, eps=1e-6):
    """Add and normalize."""
    total = x + residual
    return rms_norm_golden(total, weight, eps), total


def fused_add_rms_norm_samples(case: Case) -> Sample:
    """Draw x and residual `[..., rows, cols]` and weight `[cols]`."""
    return Sample(
        case.tensor("...", "rows", "cols", name="x"),
        case.tensor("...", "rows", "cols", name="residual"),
        case.tensor("cols", name="weight"),
        eps=1e-6,
    )


def layer_norm_golden(x, weight, bias, eps=1e-5):
    """Compute `(x - mean) / sqrt(mean((x - mean)^2) + eps) * weight + bias`."""
    centered = x - x.mean(-1, keepdim=True)
    return centered / torch.sqrt(centered.square().mean(-1, keepdim=True) + eps) * weight + bias


def layer_norm_reference(x, weight, bias, eps=1e-5):
    """Do the same in float32 and round once."""
    return layer_norm_golden(x.float(), weight.float(), bias.float(), eps).to(x.dtype)


def layer_norm_samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`, weight and bias `[cols]`."""
    return Sample(
        case.tensor("...", "rows", "cols", name="x"),
        case.tensor("cols", name="weight"),
        case.tensor("cols", name="bias"),
        eps=1e-5,
    )
