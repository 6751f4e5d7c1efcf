"""One AdamW step in eager PyTorch: the reference, the FP64 golden, and the samples; both write in place."""

import math

import torch

from opcheck import Case, Sample


def reference(
    param: torch.Tensor,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    step: int = 1,
) -> None:
    """Step in float32, with differences from 1 taken in double, and round each state once to its own dtype."""
    p, g, m, v = (tensor.float() for tensor in (param, grad, exp_avg, exp_avg_sq))
    m = m * beta1 + g * (1 - beta1)
    v = v * beta2 + g.square() * (1 - beta2)
    denominator = v.sqrt() / math.sqrt(1 - beta2**step) + eps
    param.copy_(p * (1 - lr * weight_decay) - m / denominator * (lr / (1 - beta1**step)))
    exp_avg.copy_(m)
    exp_avg_sq.copy_(v)


def golden(
    param: torch.Tensor,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    step: int = 1,
) -> None:
    """Compute `(1 - lr * weight_decay) * p - lr * m_hat / (sqrt(v_hat) + eps)` with the unbiased moments."""
    exp_avg.mul_(beta1).add_((1 - beta1) * grad)
    exp_avg_sq.mul_(beta2).add_((1 - beta2) * grad**2)
    m_hat, v_hat = exp_avg / (1 - beta1**step), exp_avg_sq / (1 - beta2**step)
    param.copy_((1 - lr * weight_decay) * param - lr * m_hat / (v_hat.sqrt() + eps))


def samples(case: Case) -> Sample:
    """Draw param, grad and both moments `[..., rows, cols]`; the second moment is never negative."""
    param, grad, exp_avg, drawn = (
        case.tensor("...", "rows", "cols", name=name) for name in ("param", "grad", "exp_avg", "exp_avg_sq")
    )
    return Sample(param, grad, exp_avg, drawn.abs(), lr=0.05, step=3)
