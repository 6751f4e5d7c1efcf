"""One AdamW step in place: a Triton kernel and its launch.

Loshchilov and Hutter, 2019, algorithm 2, with the learning rate on the decay as well, as torch.optim.AdamW:
`m = beta1 * m + (1 - beta1) * g`, `v = beta2 * v + (1 - beta2) * g^2`,
`p = (1 - lr * weight_decay) * p - lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps)`.
Every difference from 1 is taken on the host in double: a kernel sees float32 arguments, in which `1 - 0.999` is off by
1e-5 of itself.
"""

import math

import torch
import triton
import triton.language as tl

from .._layout import check_inputs

MAX_BLOCK = 1024


@triton.jit
def _step_kernel(
    param_ptr,
    grad_ptr,
    exp_avg_ptr,
    exp_avg_sq_ptr,
    size,
    beta1,
    rest1,
    beta2,
    rest2,
    keep,
    step_size,
    inverse_root_correction,
    eps,
    BLOCK: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    param = tl.load(param_ptr + at, mask=mask, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + at, mask=mask, other=0.0).to(tl.float32)
    exp_avg = tl.load(exp_avg_ptr + at, mask=mask, other=0.0).to(tl.float32)
    exp_avg_sq = tl.load(exp_avg_sq_ptr + at, mask=mask, other=0.0).to(tl.float32)
    exp_avg = beta1 * exp_avg + rest1 * grad
    exp_avg_sq = beta2 * exp_avg_sq + rest2 * grad * grad
    denominator = tl.sqrt_rn(exp_avg_sq) * inverse_root_correction + eps
    tl.store(param_ptr + at, keep * param - step_size * (exp_avg / denominator), mask=mask)
    tl.store(exp_avg_ptr + at, exp_avg, mask=mask)
    tl.store(exp_avg_sq_ptr + at, exp_avg_sq, mask=mask)


def step_in_place(
    param: torch.Tensor,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    *,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    step: int,
) -> None:
    """Write the step number `step`, from 1, into param, exp_avg and exp_avg_sq, all of one shape and of any strides."""
    check_inputs("adamw_step", param=param, grad=grad, exp_avg=exp_avg, exp_avg_sq=exp_avg_sq)
    for name, tensor in (("grad", grad), ("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)):
        if tensor.shape != param.shape:
            raise ValueError(f"adamw_step: {name} is {list(tensor.shape)}, it should be {list(param.shape)} as param")
    if step < 1:
        raise ValueError(f"adamw_step: step is {step}, it should be at least 1")
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"adamw_step: {name} is {beta}, it should be at least 0 and below 1")
    size = param.numel()
    if not size:
        return
    written = (param, exp_avg, exp_avg_sq)
    dense = [tensor.contiguous() for tensor in written]
    block = min(triton.next_power_of_2(size), MAX_BLOCK)
    with torch.cuda.device_of(param):
        _step_kernel[(triton.cdiv(size, block),)](
            dense[0],
            grad.contiguous(),
            dense[1],
            dense[2],
            size,
            beta1,
            1.0 - beta1,
            beta2,
            1.0 - beta2,
            1.0 - lr * weight_decay,
            lr / (1.0 - beta1**step),
            1.0 / math.sqrt(1.0 - beta2**step),
            eps,
            BLOCK=block,
        )
    for tensor, copy in zip(written, dense, strict=True):
        if copy is not tensor:
            tensor.copy_(copy)
