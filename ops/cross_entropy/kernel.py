"""Cross entropy of logits against class indices: Triton kernels and their launches.

Forward, with `lse = log(sum(exp(x)))`, smoothing e over C classes (Szegedy et al., 2016, section 7) and a weight z on
the square of lse (Chowdhery et al., 2022, section 5):
`loss = (1 - e) * (lse - x[target]) + e * (lse - mean(x)) + z * lse^2`.
Backward: `dx = dloss * (softmax(x) - e / C - (1 - e) * onehot(target)) + (dlse + 2 * z * lse * dloss) * softmax(x)`,
with the softmax computed again from x: exp(x - lse) is off by the rounding of lse, 3e-5 for logits near 500.
"""

from typing import Literal, cast

import torch
import triton
import triton.language as tl

from .._layout import as_rows, check_inputs
from .._reduce import maximum_and_total

Reduction = Literal["none", "mean", "sum"]
REDUCTIONS: tuple[Reduction, ...] = ("none", "mean", "sum")
MAX_BLOCK = 1024


@triton.jit
def _maximum_and_total(x_ptr, classes, BLOCK: tl.constexpr):
    """Return max(x) and sum(exp(x - max(x))) of a row; the sum is NaN where the maximum is infinite: no softmax."""
    maximum, total = maximum_and_total(x_ptr, classes, BLOCK)
    return maximum, tl.where(tl.abs(maximum) == float("inf"), float("nan"), total)


@triton.jit
def _forward_kernel(
    x_ptr,
    target_ptr,
    loss_ptr,
    lse_ptr,
    x_stride,
    classes,
    ignore_index,
    smoothing,
    lse_square_scale,
    SMOOTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    maximum, total = _maximum_and_total(x_ptr, classes, BLOCK)
    log_total = tl.log(total)
    lse = maximum + log_total

    target = tl.load(target_ptr + row)
    legal = (target >= 0) & (target < classes)
    picked = tl.load(x_ptr + target, mask=legal, other=float("nan")).to(tl.float32)
    # The difference first: beside logits of some hundreds the rounding of lse would be larger than a small loss.
    distance = maximum - picked
    if SMOOTH:
        lanes = tl.arange(0, BLOCK)
        first = tl.load(x_ptr).to(tl.float32)
        anchor = tl.where(tl.abs(first) < float("inf"), first, 0.0)
        offsets = tl.zeros([BLOCK], tl.float32)
        for start in range(0, classes, BLOCK):
            at = start + lanes
            x = tl.load(x_ptr + at, mask=at < classes, other=0.0).to(tl.float32)
            offsets += tl.where(at < classes, x - anchor, 0.0)
        distance = (1.0 - smoothing) * distance + smoothing * (maximum - anchor - tl.sum(offsets) / classes)
    loss = distance + log_total + lse_square_scale * lse * lse
    tl.store(loss_ptr + row, tl.where(target == ignore_index, 0.0, loss))
    tl.store(lse_ptr + row, lse)


@triton.jit
def _backward_kernel(
    grad_loss_ptr,
    grad_lse_ptr,
    x_ptr,
    target_ptr,
    grad_x_ptr,
    grad_loss_stride,
    grad_lse_stride,
    x_stride,
    classes,
    ignore_index,
    smoothing,
    lse_square_scale,
    HAS_GRAD_LOSS: tl.constexpr,
    HAS_GRAD_LSE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    grad_x_ptr += row * classes
    lanes = tl.arange(0, BLOCK)
    target = tl.load(target_ptr + row)
    grad_loss = 0.0
    if HAS_GRAD_LOSS:
        # NaN for a target that is no class, so that it shows in the gradient too.
        legal = (target >= 0) & (target < classes)
        grad_loss = tl.load(grad_loss_ptr + row * grad_loss_stride).to(tl.float32)
        grad_loss = tl.where(target == ignore_index, 0.0, tl.where(legal, grad_loss, float("nan")))
    grad_lse = 0.0
    if HAS_GRAD_LSE:
        grad_lse = tl.load(grad_lse_ptr + row * grad_lse_stride).to(tl.float32)

    if (target == ignore_index) & (not HAS_GRAD_LSE):
        for start in range(0, classes, BLOCK):
            at = start + lanes
            tl.store(grad_x_ptr + at, tl.zeros([BLOCK], tl.float32), mask=at < classes)
    else:
        maximum, total = _maximum_and_total(x_ptr, classes, BLOCK)
        lse = maximum + tl.log(total)
        grad_lse += grad_loss * (2.0 * lse_square_scale) * lse
        for start in range(0, classes, BLOCK):
            at = start + lanes
            x = tl.load(x_ptr + at, mask=at < classes, other=float("-inf")).to(tl.float32)
            wanted = smoothing / classes + tl.where(at == target, 1.0 - smoothing, 0.0)
            p = tl.exp(x - maximum) / total
            # The difference first: a p of nearly 1 cancels it, and the rest is small beside either.
            tl.store(grad_x_ptr + at, grad_loss * (p - wanted) + grad_lse * p, mask=at < classes)


def forward(
    logits: torch.Tensor,
    target: torch.Tensor,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    lse_square_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return in float32 the loss, `[rows]` or 0-dim, and lse `[rows]`, of logits `[rows, classes]`."""
    _check(logits, target, reduction, label_smoothing)
    rows, classes = logits.shape
    losses, lse = (torch.empty(rows, dtype=torch.float32, device=logits.device) for _ in range(2))
    if rows:
        flat = as_rows(logits)
        with torch.cuda.device_of(logits):
            _forward_kernel[(rows,)](
                flat,
                target.contiguous(),
                losses,
                lse,
                flat.stride(0),
                classes,
                ignore_index,
                label_smoothing,
                lse_square_scale,
                SMOOTH=label_smoothing != 0.0,
                BLOCK=min(triton.next_power_of_2(classes), MAX_BLOCK),
            )
    return _reduce(losses, target, cast(Reduction, reduction), ignore_index), lse


def backward(
    grad_loss: torch.Tensor | None,
    grad_lse: torch.Tensor | None,
    logits: torch.Tensor,
    target: torch.Tensor,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    lse_square_scale: float,
) -> torch.Tensor:
    """Return the gradient of logits `[rows, classes]` in their dtype; an upstream gradient that is None is zero."""
    grad_logits = torch.empty_like(logits, memory_format=torch.contiguous_format)
    rows, classes = logits.shape
    if not rows:
        return grad_logits
    flat = as_rows(logits)
    if grad_loss is not None:
        if reduction == "mean":
            grad_loss = grad_loss / (target != ignore_index).sum()
        grad_loss = grad_loss.expand(rows)
    with torch.cuda.device_of(logits):
        _backward_kernel[(rows,)](
            grad_loss,
            grad_lse,
            flat,
            target.contiguous(),
            grad_logits,
            0 if grad_loss is None else grad_loss.stride(0),
            0 if grad_lse is None else grad_lse.stride(0),
            flat.stride(0),
            classes,
            ignore_index,
            label_smoothing,
            lse_square_scale,
            HAS_GRAD_LOSS=grad_loss is not None,
            HAS_GRAD_LSE=grad_lse is not None,
            BLOCK=min(triton.next_power_of_2(classes), MAX_BLOCK),
        )
    return grad_logits


def _check(logits: torch.Tensor, target: torch.Tensor, reduction: str, label_smoothing: float) -> None:
    check_inputs("cross_entropy", logits=logits)
    if logits.dim() != 2 or logits.shape[1] == 0 or target.shape != logits.shape[:1]:
        raise ValueError(
            f"cross_entropy: logits {list(logits.shape)} and target {list(target.shape)} should be [rows, classes] and "
            "[rows], with at least 1 class"
        )
    if target.dtype != torch.int64:
        raise TypeError(f"cross_entropy: target is {target.dtype}, it should be int64")
    if target.device != logits.device:
        raise ValueError(f"cross_entropy: target is on {target.device}, logits are on {logits.device}")
    if reduction not in REDUCTIONS:
        raise ValueError(f"cross_entropy: reduction is {reduction!r}, it should be one of {', '.join(REDUCTIONS)}")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"cross_entropy: label_smoothing is {label_smoothing}, it should be from 0 to 1")


def _reduce(losses: torch.Tensor, target: torch.Tensor, reduction: Reduction, ignore_index: int) -> torch.Tensor:
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / (target != ignore_index).sum()
