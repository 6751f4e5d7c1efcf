"""K007: the last block of a blockwise absmax takes in what its buffer held behind the last element."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import twins

BLOCK = 16


@triton.jit
def _kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    x = tl.load(x_ptr + block * BLOCK + tl.arange(0, BLOCK)).to(tl.float32)
    tl.store(out_ptr + block, tl.max(tl.abs(x)))


def samples(case: Case) -> Sample:
    """Draw x `[n]`."""
    return Sample(case.tensor("n", name="x"))


def reference(x):
    padded = torch.nn.functional.pad(x, (0, -x.shape[0] % BLOCK))
    return padded.view(-1, BLOCK).abs().amax(-1)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::tail_absmax", reference=reference, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Find the largest magnitude of each block of 16 elements of x `[n]`."""
        blocks = triton.cdiv(x.shape[0], BLOCK)
        whole = x.new_empty(blocks * BLOCK) if wrong else x.new_zeros(blocks * BLOCK)
        whole[: x.shape[0]] = x
        out = x.new_empty(blocks)
        _kernel[(blocks,)](whole, out, BLOCK=BLOCK)
        return out

    op.register_fake(lambda x: x.new_empty((x.shape[0] + BLOCK - 1) // BLOCK))
