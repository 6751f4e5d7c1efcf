"""`ops::adamw_step`: one step of the AdamW optimizer, in place."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register(
    "ops::adamw_step",
    reference=reference,
    golden=golden,
    samples=samples,
    mutates_args=("param", "exp_avg", "exp_avg_sq"),
)
def adamw_step(
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
    """Update param and its moments `[...]` by grad; `step` counts from 1. There is no gradient."""
    kernel.step_in_place(
        param,
        grad,
        exp_avg,
        exp_avg_sq,
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        weight_decay=weight_decay,
        step=step,
    )


@adamw_step.register_fake
def _(param, grad, exp_avg, exp_avg_sq, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01, step=1):
    return None
