"""K070: the fake promises a transposed layout, the kernel returns a contiguous one."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::fake_strides", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        return scaled(x, 3.0)

    op.register_fake(lambda x: fresh(x.t()).t() if wrong else fresh(x))
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
