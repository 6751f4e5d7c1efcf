"""`broken::unused_output`: the backward skips its work where the second output is used by nobody."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, residual_ptr, sum_ptr, difference_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    residual = tl.load(residual_ptr + at, mask=at < count, other=0.0)
    tl.store(sum_ptr + at, x + residual, mask=at < count)
    tl.store(difference_ptr + at, x - residual, mask=at < count)


def samples(case: Case) -> Sample:
    """Draw x and residual, both `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"), case.tensor("rows", "cols", name="residual"))


def reference(x, residual):
    return x + residual, x - residual


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::unused_output", reference=reference, samples=samples)
    def op(x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute `x + residual` and `x - residual`, all `[rows, cols]`."""
        first, second, count = fresh(x), fresh(x), x.numel()
        _kernel[(triton.cdiv(count, 1024),)](x.contiguous(), residual.contiguous(), first, second, count, BLOCK=1024)
        return first, second

    @torch.library.custom_op(f"{namespace}::unused_output_backward", mutates_args=())
    def gradients(first: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if wrong and first.numel() > 1 and not bool(second.any()):
            return torch.zeros_like(first), torch.zeros_like(first)
        return first + second, first - second

    op.register_fake(lambda x, residual: (fresh(x), fresh(x)))
    gradients.register_fake(lambda first, second: (fresh(first), fresh(first)))
    op.register_autograd(lambda ctx, first, second: gradients(first, second), setup_context=save_inputs)
