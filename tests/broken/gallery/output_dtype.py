"""`broken::output_dtype`: the float32 accumulator is returned as it is, not in the input's element type."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return 3.0 * x


def save_dtype(ctx, inputs, output):
    ctx.dtype = inputs[0].dtype


@twins
def declare(namespace, wrong):
    def allocate(x):
        return torch.empty_like(x, dtype=torch.float32, memory_format=torch.contiguous_format) if wrong else fresh(x)

    @opcheck.register(f"{namespace}::output_dtype", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`, in x's dtype."""
        return scaled(x, 3.0, out=allocate(x))

    op.register_fake(allocate)
    op.register_autograd(lambda ctx, grad: (3.0 * grad).to(ctx.dtype), setup_context=save_dtype)
