"""K025: the backward tests for one mode only, so that pooling by maximum receives the gradient of the mean."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, refuse_empty, twins


@triton.jit
def _grad_kernel(grad_ptr, at_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr, MAXIMUM: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    grad = tl.load(grad_ptr + at, mask=at < cols, other=0.0)
    if MAXIMUM:
        chosen = tl.load(at_ptr + at, mask=at < cols, other=0)
        share = tl.where(chosen == row, grad, 0.0)
    else:
        share = grad / rows
    tl.store(out_ptr + row * cols + at, share, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]`; it is pooled by the mean."""
    return Sample(case.tensor("rows", "cols", name="x"), "mean")


def reference(x, mode):
    return x.max(0).values if mode == "max" else x.mean(0)


def setup_context(ctx, inputs, output):
    x, ctx.mode = inputs
    ctx.save_for_backward(x)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::mode_ignored", reference=reference, samples=samples)
    def op(x: torch.Tensor, mode: str) -> torch.Tensor:
        """Pool x `[rows, cols]` over its rows by the mean or the maximum, giving `[cols]`."""
        refuse_empty(*x.shape)
        return x.amax(0) if mode == "max" else (x.float().sum(0) / x.shape[0]).to(x.dtype)

    @torch.library.custom_op(f"{namespace}::mode_ignored_backward", mutates_args=())
    def grad_x(grad: torch.Tensor, x: torch.Tensor, mode: str) -> torch.Tensor:
        rows, cols = x.shape
        out = fresh(x)
        by_maximum = mode == "max" and not wrong
        _grad_kernel[(rows,)](
            grad.contiguous(), x.max(0).indices, out, rows, cols,
            BLOCK=triton.next_power_of_2(cols), MAXIMUM=by_maximum,
        )  # fmt: skip
        return out

    op.register_fake(lambda x, mode: x.new_empty(x.shape[1]))
    grad_x.register_fake(lambda grad, x, mode: fresh(x))
    op.register_autograd(
        lambda ctx, grad: (grad_x(grad, *ctx.saved_tensors, ctx.mode), None), setup_context=setup_context
    )
