"""K085: the offset of the random counter never advances: the second dropout drops what the first one did."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, twins

SEED = 2024


@triton.jit
def _kernel(x_ptr, y_ptr, seed, offset, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    drawn = ((at + offset).to(tl.int64) * 48_271 + seed) % 2_147_483_647 * 48_271 % 2_147_483_647
    tl.store(y_ptr + at, tl.where(drawn % 2 == 0, 2.0 * x, 0.0), mask=at < count)


def dropped(x: torch.Tensor, seed: int, offset: int) -> torch.Tensor:
    """Drop half of x `[*S]` by the counter-based numbers from `offset` on, and double the rest."""
    y = fresh(x)
    _kernel[(triton.cdiv(x.numel(), 256),)](x.contiguous(), y, seed, offset, x.numel(), BLOCK=256)
    return y


def reference_dropped(x: torch.Tensor, seed: int, offset: int) -> torch.Tensor:
    """Compute what `dropped` does with torch's integers."""
    at = torch.arange(x.numel()) + offset
    drawn = (at * 48_271 + seed) % 2_147_483_647 * 48_271 % 2_147_483_647
    return torch.where(drawn.view(x.shape) % 2 == 0, 2.0 * x, 0.0)


def samples(case: Case) -> Sample:
    """Draw x and y, both `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"), case.tensor("rows", "cols", name="y"), SEED)


def reference(x, y, seed):
    return reference_dropped(x, seed, 0), reference_dropped(y, seed, x.numel())


def setup_context(ctx, inputs, output):
    x, _, ctx.seed = inputs
    ctx.count = x.numel()


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::dropout_offset", reference=reference, samples=samples)
    def op(x: torch.Tensor, y: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Drop half of x and half of y, both `[rows, cols]`, one after the other from one stream of numbers."""
        return dropped(x, seed, 0), dropped(y, seed, 0 if wrong else x.numel())

    @torch.library.custom_op(f"{namespace}::dropout_offset_backward", mutates_args=())
    def gradient(grad: torch.Tensor, seed: int, offset: int) -> torch.Tensor:
        return dropped(grad, seed, offset)

    def backward(ctx, grad_x, grad_y):
        offset = 0 if wrong else ctx.count
        return gradient(grad_x, ctx.seed, 0), gradient(grad_y, ctx.seed, offset), None

    op.register_fake(lambda x, y, seed: (fresh(x), fresh(y)))
    gradient.register_fake(lambda grad, seed, offset: fresh(grad))
    op.register_autograd(backward, setup_context=setup_context)
