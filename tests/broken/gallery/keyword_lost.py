"""`broken::keyword_lost`: the backward takes a keyword-only factor to have its default value, 1."""

import torch

import opcheck
from opcheck import Case, Sample

from .twins import fresh, scaled, twins


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]`; the factor is not the default one."""
    return Sample(case.tensor("rows", "cols", name="x"), factor=0.5)


def reference(x, *, factor=1.0):
    return factor * x


def setup_context(ctx, inputs, keyword_only_inputs, output):
    ctx.factor = keyword_only_inputs["factor"]


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::keyword_lost", reference=reference, samples=samples)
    def op(x: torch.Tensor, *, factor: float = 1.0) -> torch.Tensor:
        """Compute `factor * x` for x `[rows, cols]`."""
        return scaled(x, factor)

    op.register_fake(lambda x, *, factor=1.0: fresh(x))
    op.register_autograd(lambda ctx, grad: grad.clone() if wrong else ctx.factor * grad, setup_context=setup_context)
