"""K046: a decay between two steps is split into exp(G_t) times exp(-G_s), of which the second overflows."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, refuse_empty, twins


@triton.jit
def _split_kernel(decay_ptr, x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    total = tl.cumsum(tl.load(decay_ptr + row * cols + at, mask=mask, other=0.0), axis=0)
    x = tl.load(x_ptr + row * cols + at, mask=mask, other=0.0)
    tl.store(y_ptr + row * cols + at, tl.exp(total) * tl.cumsum(tl.exp(-total) * x, axis=0), mask=mask)


@triton.jit
def _kernel(decay_ptr, x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)
    mask = row < rows
    state = tl.zeros([BLOCK], tl.float32)
    for at in range(cols):
        decay = tl.load(decay_ptr + row * cols + at, mask=mask, other=0.0)
        state = state * tl.exp(decay) + tl.load(x_ptr + row * cols + at, mask=mask, other=0.0)
        tl.store(y_ptr + row * cols + at, state, mask=mask)


def samples(case: Case) -> Sample:
    """Draw decay and x, both `[rows, cols]`; the logarithm of a decay is never positive, and of ordinary size."""
    decay = -0.05 * case.tensor("rows", "cols", name="decay").abs()
    return Sample(decay, case.tensor("rows", "cols", name="x"))


def reference(decay, x):
    total = decay.cumsum(-1)
    between = total[:, :, None] - total[:, None, :]
    past = torch.ones_like(between, dtype=torch.bool).tril()
    return (torch.where(past, between, -torch.inf).exp() * x[:, None, :]).sum(-1)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::decay_overflow", reference=reference, samples=samples)
    def op(decay: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Run `y_t = exp(decay_t) * y_(t-1) + x_t` along the rows of decay and x, both `[rows, cols]`."""
        rows, cols = x.shape
        refuse_empty(rows, cols)
        y = fresh(x)
        decay, x = decay.contiguous(), x.contiguous()
        if wrong:
            _split_kernel[(rows,)](decay, x, y, cols, BLOCK=triton.next_power_of_2(cols))
        else:
            _kernel[(1,)](decay, x, y, rows, cols, BLOCK=triton.next_power_of_2(rows))
        return y

    op.register_fake(lambda decay, x: fresh(x))
