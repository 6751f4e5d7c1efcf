"""`broken::untraced_backward`: the autograd formula launches its kernel itself; traced, the launch is lost."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::untraced_backward", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        return scaled(x, 3.0)

    @torch.library.custom_op(f"{namespace}::untraced_backward_backward", mutates_args=())
    def grad_x(grad: torch.Tensor) -> torch.Tensor:
        return scaled(grad, 3.0)

    grad_x.register_fake(fresh)
    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: scaled(grad, 3.0) if wrong else grad_x(grad))
