"""`broken::stale_result`: the last result is given again for the same tensor, though it now holds other values."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return (2.0 * x.float()).to(x.dtype)


@twins
def declare(namespace, wrong):
    last: list[tuple[torch.Tensor, int, torch.Tensor]] = []

    @opcheck.register(f"{namespace}::stale_result", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Double x `[rows, cols]`; the result of the last call is kept, with its input so that its address stays."""
        for before, version, result in last:
            same = before.data_ptr() == x.data_ptr() and before.stride() == x.stride() and before.shape == x.shape
            if same and (wrong or version == x._version):
                return result.clone()
        result = scaled(x, 2.0)
        last[:] = [(x, x._version, result.clone())]
        return result

    op.register_fake(lambda x: fresh(x))
    op.register_autograd(lambda ctx, grad: (2.0 * grad.float()).to(grad.dtype))
