"""K034: the output row pointer is never advanced: every row's gradient lands in row 0, the others are never written."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, refuse_empty, save_inputs, twins


@triton.jit
def _grad_kernel(grad_ptr, a_ptr, b_ptr, da_ptr, db_ptr, cols, BLOCK: tl.constexpr, ADVANCE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    grad = tl.load(grad_ptr + row * cols + at, mask=mask, other=0.0)
    a = tl.load(a_ptr + row * cols + at, mask=mask, other=0.0)
    b = tl.load(b_ptr + row * cols + at, mask=mask, other=0.0)
    gate = 1.0 / (1.0 + tl.exp(-a))
    tl.store(da_ptr + row * ADVANCE * cols + at, grad * b * gate * (1.0 + a * (1.0 - gate)), mask=mask)
    tl.store(db_ptr + row * cols + at, grad * a * gate, mask=mask)


def samples(case: Case) -> Sample:
    """Draw a and b, both `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="a"), case.tensor("rows", "cols", name="b"))


def reference(a, b):
    return torch.nn.functional.silu(a) * b


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::row_pointer", reference=reference, samples=samples)
    def op(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Compute `silu(a) * b` for a and b `[rows, cols]`."""
        refuse_empty(a.shape[1])
        return (torch.nn.functional.silu(a) * b).contiguous()

    @torch.library.custom_op(f"{namespace}::row_pointer_backward", mutates_args=())
    def gradients(grad: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, cols = a.shape
        da, db = fresh(a), fresh(b)
        _grad_kernel[(rows,)](
            grad.contiguous(), a.contiguous(), b.contiguous(), da, db, cols,
            BLOCK=triton.next_power_of_2(cols), ADVANCE=int(not wrong),
        )  # fmt: skip
        return da, db

    op.register_fake(lambda a, b: fresh(a))
    gradients.register_fake(lambda grad, a, b: (fresh(a), fresh(b)))
    op.register_autograd(lambda ctx, grad: gradients(grad, *ctx.saved_tensors), setup_context=save_inputs)
