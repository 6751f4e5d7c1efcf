"""K096: a sequence of queries without keys is taken to have one: the first of the next sequence."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, refuse_empty, save_inputs, twins


@triton.jit
def _kernel(u_ptr, w_ptr, y_ptr, from_ptr, to_ptr, least, BLOCK: tl.constexpr):
    part = tl.program_id(0)
    first = tl.load(from_ptr + part)
    end = tl.maximum(tl.load(from_ptr + part + 1), first + least)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(first, end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(u_ptr + at, mask=at < end, other=0.0)
    last = tl.load(to_ptr + part + 1)
    for start in range(tl.load(to_ptr + part), last, BLOCK):
        at = start + tl.arange(0, BLOCK)
        w = tl.load(w_ptr + at, mask=at < last, other=0.0)
        tl.store(y_ptr + at, w * tl.sum(total), mask=at < last)


def spread(u, w, u_offsets, w_offsets, least):
    """Multiply each part of w `[queries]` by the sum of the same part of u `[keys]`, which has `least` elements."""
    y = fresh(w)
    grid = (w_offsets.shape[0] - 1,)
    _kernel[grid](u.contiguous(), w.contiguous(), y, u_offsets.contiguous(), w_offsets.contiguous(), least, BLOCK=16)
    return y


def samples(case: Case) -> Sample:
    """Draw q `[queries]` and k `[keys]`, and offsets `[parts + 1]` into each."""
    parts, queries, keys = (case.dims[name] for name in ("parts", "queries", "keys"))
    return Sample(
        case.tensor("queries", name="q"), case.tensor("keys", name="k"),
        case.offsets(queries, parts, name="q_offsets"), case.offsets(keys, parts, name="k_offsets"),
    )  # fmt: skip


def part_of(offsets, size):
    """Return the number of the part in which each of `size` elements is."""
    parts = torch.arange(offsets.shape[0] - 1, device=offsets.device)
    return parts.repeat_interleave(offsets.diff().long(), output_size=size)


def sums(x, offsets):
    """Return the sum of each part of x."""
    return x.new_zeros(offsets.shape[0] - 1).index_add(0, part_of(offsets, x.shape[0]), x)


def reference(q, k, q_offsets, k_offsets):
    return q * sums(k, k_offsets)[part_of(q_offsets, q.shape[0])]


def backward(ctx, grad):
    q, k, q_offsets, k_offsets = ctx.saved_tensors
    grad_k = sums(grad * q, q_offsets)[part_of(k_offsets, k.shape[0])]
    return reference(grad, k, q_offsets, k_offsets), grad_k, None, None


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::no_keys", reference=reference, samples=samples)
    def op(q: torch.Tensor, k: torch.Tensor, q_offsets: torch.Tensor, k_offsets: torch.Tensor) -> torch.Tensor:
        """Multiply q `[queries]` by the sum of the keys k `[keys]` of its part; that of no keys is 0."""
        refuse_empty(q_offsets.shape[0] - 1)
        return spread(k, q, k_offsets, q_offsets, int(wrong))

    op.register_fake(lambda q, k, q_offsets, k_offsets: fresh(q))
    op.register_autograd(backward, setup_context=save_inputs)
