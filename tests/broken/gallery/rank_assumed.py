"""K026: the forward takes any rank, the backward takes shape[0] for the number of rows and all the rest for a row."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    tl.store(y_ptr + row * cols + at, x - tl.sum(x) / cols, mask=at < cols)


def centred(x: torch.Tensor, rows: int, cols: int) -> torch.Tensor:
    """Subtract the mean of each of `rows` stretches of `cols` elements of x `[*S]`."""
    y = fresh(x)
    _kernel[(rows,)](x.contiguous(), y, cols, BLOCK=triton.next_power_of_2(cols))
    return y


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))


def reference(x):
    return x - x.mean(-1, keepdim=True)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::rank_assumed", reference=reference, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Subtract its mean from each row of x `[..., rows, cols]`."""
        return centred(x, x.shape[:-1].numel(), x.shape[-1])

    @torch.library.custom_op(f"{namespace}::rank_assumed_backward", mutates_args=())
    def grad_x(grad: torch.Tensor) -> torch.Tensor:
        rows = grad.shape[0] if wrong else grad.shape[:-1].numel()
        return centred(grad, rows, grad.numel() // max(rows, 1))

    op.register_fake(fresh)
    grad_x.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: grad_x(grad))
