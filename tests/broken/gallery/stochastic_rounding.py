"""`broken::stochastic_rounding`: results are rounded up or down at random, and nothing declares it."""

import torch

import opcheck

from .twins import draw_x, fresh, twins


def reference(x):
    return (1.3 * x.float()).to(x.dtype)


def rounded_at_random(x):
    """Round x `[*S]` in float32 to bfloat16: add 16 random bits below the last one that is kept, then cut."""
    noise = torch.randint(0, 1 << 16, x.shape, dtype=torch.int32, device=x.device)
    bits = (x.view(torch.int32) + noise) & -(1 << 16)
    return bits.view(torch.float32).to(torch.bfloat16)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::stochastic_rounding", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `1.3 * x` for x `[rows, cols]` in bfloat16."""
        wide = 1.3 * x.contiguous().float()
        return rounded_at_random(wide) if wrong else wide.to(x.dtype)

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: (1.3 * grad.float()).to(grad.dtype))
