"""What all these ops share: `2 * x`, its golden, its samples, its fake and its backward."""

import torch

import opcheck
from opcheck import Case, Sample


def reference(x: torch.Tensor) -> torch.Tensor:
    """Double x `[n]` in its own dtype."""
    return x * 2


def golden(x: torch.Tensor) -> torch.Tensor:
    """Double x `[n]` in FP64."""
    return x + x


def samples(case: Case) -> Sample:
    """Draw x `[n]`."""
    return Sample(case.tensor("n", name="x"))


def register(name, *, reference=reference, golden=golden, samples=samples):
    """Register an op of one tensor and one output, complete with fake and backward."""

    def decorate(function):
        op = opcheck.register(name, reference=reference, golden=golden, samples=samples)(function)
        op.register_fake(lambda x: torch.empty_like(x))
        op.register_autograd(lambda ctx, grad: grad * 2)
        return op

    return decorate
