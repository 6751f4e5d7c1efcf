"""K095: packed sequences are read as if each were padded to the longest: at its number times that length."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .no_keys import part_of, sums
from .twins import fresh, refuse_empty, save_inputs, twins


@triton.jit
def _kernel(x_ptr, factor_ptr, offsets_ptr, y_ptr, longest, BLOCK: tl.constexpr, PADDED: tl.constexpr):
    part = tl.program_id(0)
    first = tl.load(offsets_ptr + part)
    length = tl.load(offsets_ptr + part + 1) - first
    base = part * longest if PADDED else first
    factor = tl.load(factor_ptr + part)
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + at, mask=at < length, other=0.0)
        tl.store(y_ptr + first + at, factor * x, mask=at < length)


def samples(case: Case) -> Sample:
    """Draw x `[tokens]`, factor `[parts]`, and offsets `[parts + 1]` into x."""
    offsets = case.offsets(case.dims["tokens"], case.dims["parts"], name="offsets")
    return Sample(case.tensor("tokens", name="x"), case.tensor("parts", name="factor"), offsets)


def reference(x, factor, offsets):
    return x * factor[part_of(offsets, x.shape[0])]


def backward(ctx, grad):
    x, factor, offsets = ctx.saved_tensors
    return reference(grad, factor, offsets), sums(grad * x, offsets), None


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::padded_batch", reference=reference, samples=samples)
    def op(x: torch.Tensor, factor: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """Multiply the parts of x `[tokens]`, between offsets `[parts + 1]`, each by its factor `[parts]`."""
        refuse_empty(factor.shape[0])
        y = fresh(x)
        longest = int(offsets.diff().max())
        _kernel[factor.shape](
            x.contiguous(), factor.contiguous(), offsets.contiguous(), y, longest, BLOCK=16, PADDED=wrong
        )
        return y

    op.register_fake(lambda x, factor, offsets: fresh(x))
    op.register_autograd(backward, setup_context=save_inputs)
