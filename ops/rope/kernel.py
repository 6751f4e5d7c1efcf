"""Rotary position embedding: one Triton kernel for forward, backward and in place, and its launches.

Su et al., 2021, equation 34: each pair `(a, b)` of a head's first `rot` elements turns by its position's angle into
`(a * cos - b * sin, b * cos + a * sin)`; the others pass through. Pair i is `(x[i], x[i + rot / 2])` in the
half-rotated convention of GPT-NeoX, `(x[2i], x[2i + 1])` in the interleaved one of GPT-J.
A rotation's transpose is its inverse: the backward turns the gradient back, by -sin.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs

MAX_BLOCK = 1024
MAX_BLOCK_DIM = 128


@triton.jit
def _rotate_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    x_stride_batch,
    x_stride_seq,
    x_stride_head,
    x_stride_dim,
    out_stride_batch,
    out_stride_seq,
    out_stride_head,
    out_stride_dim,
    seq,
    heads,
    half,
    dim,
    INTERLEAVED: tl.constexpr,
    INVERSE: tl.constexpr,
    COPY_REST: tl.constexpr,
    BLOCK_HEADS: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    position = token % seq
    x_ptr += token // seq * x_stride_batch + position * x_stride_seq
    out_ptr += token // seq * out_stride_batch + position * out_stride_seq
    head = tl.program_id(1).to(tl.int64) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)[:, None]
    x_head = x_ptr + head * x_stride_head
    out_head = out_ptr + head * out_stride_head
    lanes = tl.arange(0, BLOCK_DIM).to(tl.int64)

    for start in range(0, half, BLOCK_DIM):
        pair = start + lanes
        cos = tl.load(cos_ptr + position * half + pair, mask=pair < half, other=0.0).to(tl.float32)[None, :]
        sin = tl.load(sin_ptr + position * half + pair, mask=pair < half, other=0.0).to(tl.float32)[None, :]
        if INVERSE:
            sin = -sin
        if INTERLEAVED:
            at_a, at_b = 2 * pair[None, :], 2 * pair[None, :] + 1
        else:
            at_a, at_b = pair[None, :], half + pair[None, :]
        mask = (head < heads) & (pair < half)[None, :]
        a = tl.load(x_head + at_a * x_stride_dim, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(x_head + at_b * x_stride_dim, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_head + at_a * out_stride_dim, a * cos - b * sin, mask=mask)
        tl.store(out_head + at_b * out_stride_dim, b * cos + a * sin, mask=mask)

    if COPY_REST:
        for start in range(2 * half, dim, BLOCK_DIM):
            at = (start + lanes)[None, :]
            mask = (head < heads) & (at < dim)
            rest = tl.load(x_head + at * x_stride_dim, mask=mask, other=0.0)
            tl.store(out_head + at * out_stride_dim, rest, mask=mask)


def rotate(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool, *, inverse: bool = False
) -> torch.Tensor:
    """Turn the pairs of x `[batch, seq, heads, dim]` by cos and sin `[seq, rot / 2]`, or back; contiguous."""
    _check("rope", x, cos, sin)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    _launch(x, cos, sin, out, interleaved, inverse=inverse)
    return out


def rotate_in_place(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> None:
    """Turn the pairs of x `[batch, seq, heads, dim]`, of any strides, where they are."""
    _check("rope_", x, cos, sin)
    if any(size > 1 and stride == 0 for size, stride in zip(x.shape, x.stride(), strict=True)):
        raise ValueError(f"rope_: x {list(x.shape)} is expanded: several elements share one place; pass a clone")
    _launch(x, cos, sin, x, interleaved, inverse=False)


def _launch(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, out: torch.Tensor, interleaved: bool, *, inverse: bool
) -> None:
    if not x.numel():
        return
    batch, seq, heads, dim = x.shape
    half = cos.shape[1]
    block_dim = min(triton.next_power_of_2(half), MAX_BLOCK_DIM)
    block_heads = min(triton.next_power_of_2(heads), MAX_BLOCK // block_dim)
    with torch.cuda.device_of(x):
        _rotate_kernel[(batch * seq, triton.cdiv(heads, block_heads))](
            x,
            cos.contiguous(),
            sin.contiguous(),
            out,
            *x.stride(),
            *out.stride(),
            seq,
            heads,
            half,
            dim,
            INTERLEAVED=interleaved,
            INVERSE=inverse,
            COPY_REST=out is not x,
            BLOCK_HEADS=block_heads,
            BLOCK_DIM=block_dim,
        )


def _check(op: str, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    check_inputs(op, x=x, cos=cos, sin=sin)
    if x.dim() != 4 or x.shape[3] < 2:
        raise ValueError(f"{op}: x is {list(x.shape)}, it should be [batch, seq, heads, dim] with dim of at least 2")
    if cos.dim() != 2 or cos.shape != sin.shape or cos.shape[0] != x.shape[1]:
        raise ValueError(
            f"{op}: cos {list(cos.shape)} and sin {list(sin.shape)} should both be [{x.shape[1]}, rot / 2] as x's seq"
        )
    if not 1 <= cos.shape[1] <= x.shape[3] // 2:
        raise ValueError(f"{op}: cos has {cos.shape[1]} angles, it should have 1 to {x.shape[3] // 2}, half of dim")
