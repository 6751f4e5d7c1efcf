"""K092: the largest magnitude of a block is looked for among its first 512 elements, whatever the block size is."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

import opcheck
from opcheck import Case, Sample

from .twins import twins

LEAST = 2.0**-40


@triton.jit
def _kernel(x_ptr, q_ptr, count, seen, LEAST: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    at = tl.program_id(0) * BLOCK + lanes
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    largest = tl.max(tl.where(lanes < seen, tl.abs(x), 0.0))
    scale = tl.div_rn(tl.maximum(largest, LEAST), 7.0)
    q = libdevice.rint(tl.div_rn(x, scale + tl.zeros([BLOCK], tl.float32)))
    tl.store(q_ptr + at, tl.minimum(tl.maximum(q, -7.0), 7.0).to(tl.int8), mask=at < count)


def samples(case: Case) -> Sample:
    """Draw x `[n]`."""
    return Sample(case.tensor("n", name="x"))


def golden(x, block=64):
    blocks = torch.nn.functional.pad(x, (0, -x.shape[0] % block)).view(-1, block)
    scale = blocks.abs().amax(-1, keepdim=True).clamp(min=LEAST) / 7.0
    return (blocks / scale).clamp(-7.0, 7.0).view(-1)[: x.shape[0]].clone()


def reference(x, block=64):
    return golden(x, block).round().to(torch.int8)


def allocate(x, block=64):
    return torch.empty_like(x, dtype=torch.int8, memory_format=torch.contiguous_format)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::block_size", reference=reference, golden=golden, samples=samples)
    def op(x: torch.Tensor, block: int = 64) -> torch.Tensor:
        """Quantize blocks of x `[n]` to -7 to 7, each by its largest magnitude."""
        q = allocate(x, block)
        seen = min(512, block) if wrong else block
        _kernel[(triton.cdiv(x.numel(), block),)](x.contiguous(), q, x.numel(), seen, LEAST=LEAST, BLOCK=block)
        return q

    op.register_fake(allocate)
