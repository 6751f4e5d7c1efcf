"""K087: the backward draws the mask anew, from a counter that the forward has advanced: it drops other elements."""

import torch

import opcheck
from opcheck import Case, Sample

from .dropout_offset import SEED, dropped, reference_dropped
from .twins import fresh, twins


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"), SEED)


def reference(x, seed):
    return reference_dropped(x, seed, 0)


def setup_context(ctx, inputs, output):
    x, ctx.seed = inputs
    ctx.count = x.numel()


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::dropout_recomputed", reference=reference, samples=samples)
    def op(x: torch.Tensor, seed: int) -> torch.Tensor:
        """Drop half of x `[rows, cols]` and double the rest."""
        return dropped(x, seed, 0)

    @torch.library.custom_op(f"{namespace}::dropout_recomputed_backward", mutates_args=())
    def gradient(grad: torch.Tensor, seed: int, offset: int) -> torch.Tensor:
        return dropped(grad, seed, offset)

    op.register_fake(lambda x, seed: fresh(x))
    gradient.register_fake(lambda grad, seed, offset: fresh(grad))
    op.register_autograd(
        lambda ctx, grad: (gradient(grad, ctx.seed, ctx.count if wrong else 0), None), setup_context=setup_context
    )
