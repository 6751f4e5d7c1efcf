"""Flash attention, batched and packed: Triton kernels for forward and backward, and their launches.

Forward (Dao, 2023, algorithm 1): a program has a tile of queries, those of several heads that share a key head, and
passes over tiles of keys with the running maximum and sum of Milakov and Gimelshein (2018); it keeps
`lse = log(sum(exp(logits)))` of each query for the backward.
Backward (algorithm 2), without atomics: `p = exp(logits - lse)`, `ds = p * (do @ v^T - delta)`, with
`delta = sum(do * out)`; `dq = scale * ds @ k` by tiles of queries, `dk = scale * ds^T @ q` and `dv = p^T @ do` by tiles
of keys, each over all query heads of its key head.

What the forward keeps is rounded, and the recipe as it stands is further off than it has to be: by `out` in a narrow
type, and with it delta (k around 4: dq 7 times as far off as with the exact one); by an lse near 1e5, and with it all
weights of a query (1 %). Both errors show in sums of which the right value is known, 1 for p and 0 for ds: the kernel
for dq takes them out by one product `p @ k` more, and leaves corrected numbers to the kernel for dk and dv. The same
product takes out what rounding ds to an operand of the dot adds to its sum.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .._layout import check_inputs

BLOCK_QUERIES = 16
MOST_KEYS = 64  # of a tile, while its vectors take no more than TILE_BYTES
TILE_BYTES = 16384
MOST_HEADS = 4  # that share a tile
LOWEST = tl.constexpr(-3.4028234663852886e38)  # of float32
DIM_STEP, LEAST_DIM, MOST_DIM = 8, 16, 256


@triton.jit
def _lift(largest):
    """Return the power of two that brings a magnitude near 1, 1 for 0 and infinity: float16 is coarse below 2^-14."""
    exponent = tl.floor(tl.log2(tl.where((largest > 0.0) & (largest < float("inf")), largest, 1.0)))
    return tl.exp2(-tl.minimum(tl.maximum(exponent, -120.0), 120.0))


@triton.jit
def _task(program, offsets_ptr, sequences, heads, length, BLOCK: tl.constexpr, VARLEN: tl.constexpr):
    """Return the sequence and head of a program, and the first position of its tile.

    Packed sequences have `total // BLOCK + sequences` tiles: the first one of a sequence is the tile in which it
    begins, counted with one more for each sequence before it. So nobody has to know the longest; the last tile of a
    sequence may lie beyond its end.
    """
    if VARLEN:
        head = program % heads
        tile = program // heads
        sequence = 0
        beyond = sequences
        while beyond - sequence > 1:
            middle = (sequence + beyond) // 2
            if tl.load(offsets_ptr + middle) // BLOCK + middle <= tile:
                sequence = middle
            else:
                beyond = middle
        start = (tile - tl.load(offsets_ptr + sequence) // BLOCK - sequence) * BLOCK
    else:
        tiles = tl.cdiv(length, BLOCK)
        head = program // tiles % heads
        sequence = program // tiles // heads
        start = program % tiles * BLOCK
    return tl.cast(sequence, tl.int64), head, start


@triton.jit
def _queries_of(
    program, offsets_ptr, sequences, kv_heads, group, queries,
    GROUP: tl.constexpr, BLOCK_QUERIES: tl.constexpr, VARLEN: tl.constexpr,
):  # fmt: skip
    """Return the sequence and key head of a program, its first query, and the member of the group in each row."""
    blocks = tl.cdiv(group, GROUP)
    sequence, block, start = _task(program, offsets_ptr, sequences, kv_heads * blocks, queries, BLOCK_QUERIES, VARLEN)
    member = block % blocks * GROUP + tl.arange(0, BLOCK_QUERIES * GROUP) % GROUP
    return sequence, block // blocks, start, member


@triton.jit
def _extent(offsets_ptr, sequence, length, VARLEN: tl.constexpr):
    """Return where a sequence begins along the axis of tokens, and its length."""
    first = 0
    if VARLEN:
        first = tl.load(offsets_ptr + sequence)
        length = tl.load(offsets_ptr + sequence + 1) - first
    return first, length


@triton.jit
def _numbers(strides, sequence, head, token):
    """Return the offsets of one number for each head and token, in elements."""
    return sequence * strides[0] + head * strides[1] + token * strides[2]


@triton.jit
def _vectors(strides, sequence, head, token, lanes):
    """Return the offsets of the vectors `[head and token, lanes]`."""
    return _numbers(strides, sequence, head, token)[:, None] + (lanes * strides[3])[None, :]


@triton.jit
def _last_seen(query, queries, keys, CAUSAL: tl.constexpr):
    """Return the last key that each query sees: where causal, the last query sees all, the one before a key less."""
    last = tl.zeros_like(query) + (keys - 1)
    if CAUSAL:
        last = tl.minimum(query + (keys - queries), last)
    return last


@triton.jit
def _logits(q, k, scale, softcap, CAPPED: tl.constexpr):
    logits = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    if CAPPED:
        logits = softcap * libdevice.tanh(logits / softcap)
    return logits


@triton.jit
def _plus_dot(total, a, b):
    """Return `total + a @ b`; in float32 the products of the tile are summed up first, apart from the total.

    Without tensor cores a dot adds its products to its accumulator one after the other: over 32,768 keys the rounding
    of so many steps is eight times that of the tiles. A plain `total + tl.dot(a, b)` would be made the same.
    """
    if a.dtype == tl.float32:
        total = tl.fma(tl.dot(a, b, input_precision="ieee"), 1.0, total)
    else:
        total = tl.dot(a, b, total, input_precision="ieee")
    return total


@triton.jit
def _weights(q, k, v, grad, lse, delta, seen, scale, softcap, CAPPED: tl.constexpr):
    """Return `p = exp(logits - lse)`, `do @ v^T - delta`, and p times the slope of the cap."""
    logits = _logits(q, k, scale, softcap, CAPPED)
    p = tl.where(seen, tl.exp(logits - lse), 0.0)
    centred = tl.dot(grad, tl.trans(v), input_precision="ieee") - delta
    sloped = p
    if CAPPED:
        capped = logits / softcap
        sloped = p * (1.0 - capped * capped)
    return p, centred, sloped


@triton.jit
def _forward_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, cu_seqlens_q_ptr, cu_seqlens_k_ptr,
    q_strides, k_strides, v_strides, out_strides, lse_strides,
    sequences, kv_heads, group, queries, keys, dim, scale, softcap,
    CAUSAL: tl.constexpr, CAPPED: tl.constexpr, VARLEN: tl.constexpr,
    GROUP: tl.constexpr, BLOCK_QUERIES: tl.constexpr, BLOCK_KEYS: tl.constexpr, BLOCK_DIM: tl.constexpr,
):  # fmt: skip
    sequence, kv_head, start, member = _queries_of(
        tl.program_id(0), cu_seqlens_q_ptr, sequences, kv_heads, group, queries, GROUP, BLOCK_QUERIES, VARLEN
    )
    first_query, queries = _extent(cu_seqlens_q_ptr, sequence, queries, VARLEN)
    first_key, keys = _extent(cu_seqlens_k_ptr, sequence, keys, VARLEN)
    if start >= queries:
        return
    query = start + tl.arange(0, BLOCK_QUERIES * GROUP) // GROUP
    last = _last_seen(query, queries, keys, CAUSAL)[:, None]
    head = (kv_head * group + member).to(tl.int64)
    token = first_query + query.to(tl.int64)
    lanes = tl.arange(0, BLOCK_DIM)
    in_dim = (lanes < dim)[None, :]
    lanes = lanes.to(tl.int64)
    inside = (query < queries) & (member < group)
    mask = inside[:, None] & in_dim
    q = tl.load(q_ptr + _vectors(q_strides, sequence, head, token, lanes), mask=mask, other=0.0)
    key = tl.arange(0, BLOCK_KEYS)
    kv_head = tl.cast(kv_head, tl.int64)
    k_at = k_ptr + _vectors(k_strides, sequence, kv_head, first_key + key.to(tl.int64), lanes)
    v_at = v_ptr + _vectors(v_strides, sequence, kv_head, first_key + key.to(tl.int64), lanes)

    # The lowest number, and not -Inf, of which exp(-Inf + Inf) would be NaN before the first key that is seen.
    maximum = tl.full([BLOCK_QUERIES * GROUP], LOWEST, tl.float32)
    total = tl.zeros([BLOCK_QUERIES * GROUP], tl.float32)
    out = tl.zeros([BLOCK_QUERIES * GROUP, BLOCK_DIM], tl.float32)
    end = keys
    if CAUSAL:
        end = tl.minimum(keys, start + BLOCK_QUERIES + keys - queries)
    for _ in range(0, end, BLOCK_KEYS):
        in_tile = (key < keys)[:, None] & in_dim
        k = tl.load(k_at, mask=in_tile, other=0.0)
        v = tl.load(v_at, mask=in_tile, other=0.0)
        logits = tl.where(key[None, :] <= last, _logits(q, k, scale, softcap, CAPPED), float("-inf"))
        larger = tl.maximum(maximum, tl.max(logits, 1))
        p = tl.exp(logits - larger[:, None])
        rescale = tl.exp(maximum - larger)
        total = total * rescale + tl.sum(p, 1)
        out = _plus_dot(out * rescale[:, None], p.to(v.dtype), v)
        maximum = larger
        key += BLOCK_KEYS
        k_at += BLOCK_KEYS * tl.cast(k_strides[2], tl.int64)
        v_at += BLOCK_KEYS * tl.cast(v_strides[2], tl.int64)

    # A query that sees no key has a sum of 0.
    out = tl.where(total[:, None] == 0.0, 0.0, out / total[:, None])
    lse = tl.where(total == 0.0, float("-inf"), maximum + tl.log(total))
    tl.store(out_ptr + _vectors(out_strides, sequence, head, token, lanes), out, mask=mask)
    tl.store(lse_ptr + _numbers(lse_strides, sequence, head, token), lse, mask=inside)


@triton.jit
def _grad_query_kernel(
    q_ptr, k_ptr, v_ptr, grad_ptr, out_ptr, lse_ptr, grad_lse_ptr, grad_q_ptr, delta_ptr, norm_ptr,
    cu_seqlens_q_ptr, cu_seqlens_k_ptr,
    q_strides, k_strides, v_strides, grad_strides, out_strides, lse_strides, grad_lse_strides,
    sequences, kv_heads, group, queries, keys, dim, scale, softcap,
    CAUSAL: tl.constexpr, CAPPED: tl.constexpr, VARLEN: tl.constexpr,
    GROUP: tl.constexpr, BLOCK_QUERIES: tl.constexpr, BLOCK_KEYS: tl.constexpr, BLOCK_DIM: tl.constexpr,
):  # fmt: skip
    sequence, kv_head, start, member = _queries_of(
        tl.program_id(0), cu_seqlens_q_ptr, sequences, kv_heads, group, queries, GROUP, BLOCK_QUERIES, VARLEN
    )
    first_query, queries = _extent(cu_seqlens_q_ptr, sequence, queries, VARLEN)
    first_key, keys = _extent(cu_seqlens_k_ptr, sequence, keys, VARLEN)
    if start >= queries:
        return
    query = start + tl.arange(0, BLOCK_QUERIES * GROUP) // GROUP
    last = _last_seen(query, queries, keys, CAUSAL)[:, None]
    head = (kv_head * group + member).to(tl.int64)
    token = first_query + query.to(tl.int64)
    lanes = tl.arange(0, BLOCK_DIM)
    in_dim = (lanes < dim)[None, :]
    lanes = lanes.to(tl.int64)
    inside = (query < queries) & (member < group)
    mask = inside[:, None] & in_dim
    q = tl.load(q_ptr + _vectors(q_strides, sequence, head, token, lanes), mask=mask, other=0.0)
    grad = tl.load(grad_ptr + _vectors(grad_strides, sequence, head, token, lanes), mask=mask, other=0.0)
    out_at = _vectors(out_strides, sequence, head, token, lanes)
    out = tl.load(out_ptr + out_at, mask=mask, other=0.0)
    row = _numbers(lse_strides, sequence, head, token)
    lse = tl.load(lse_ptr + row, mask=inside, other=0.0)[:, None]
    grad_lse = tl.load(grad_lse_ptr + _numbers(grad_lse_strides, sequence, head, token), mask=inside, other=0.0)
    delta = tl.sum(grad.to(tl.float32) * out.to(tl.float32), 1)
    key = tl.arange(0, BLOCK_KEYS)
    kv_head = tl.cast(kv_head, tl.int64)
    k_at = k_ptr + _vectors(k_strides, sequence, kv_head, first_key + key.to(tl.int64), lanes)
    v_at = v_ptr + _vectors(v_strides, sequence, kv_head, first_key + key.to(tl.int64), lanes)

    grad_q = tl.zeros([BLOCK_QUERIES * GROUP, BLOCK_DIM], tl.float32)
    sum_k = tl.zeros([BLOCK_QUERIES * GROUP, BLOCK_DIM], tl.float32)
    sum_p = tl.zeros([BLOCK_QUERIES * GROUP], tl.float32)
    sum_ds = tl.zeros([BLOCK_QUERIES * GROUP], tl.float32)
    sum_sloped = tl.zeros([BLOCK_QUERIES * GROUP], tl.float32)
    sum_operand = tl.zeros([BLOCK_QUERIES * GROUP], tl.float32)
    lost = tl.zeros([BLOCK_QUERIES * GROUP], tl.float32)
    end = keys
    if CAUSAL:
        end = tl.minimum(keys, start + BLOCK_QUERIES + keys - queries)
    for _ in range(0, end, BLOCK_KEYS):
        in_tile = (key < keys)[:, None] & in_dim
        k = tl.load(k_at, mask=in_tile, other=0.0)
        v = tl.load(v_at, mask=in_tile, other=0.0)
        p, centred, sloped = _weights(q, k, v, grad, lse, delta[:, None], key[None, :] <= last, scale, softcap, CAPPED)
        sum_p += tl.sum(p, 1)
        sum_ds += tl.sum(p * centred, 1)
        sum_sloped += tl.sum(sloped, 1)
        ds = sloped * centred
        ds_operand, p_operand = ds.to(k.dtype), sloped.to(k.dtype)
        lost += tl.sum(ds - ds_operand.to(tl.float32), 1)
        sum_operand += tl.sum(p_operand.to(tl.float32), 1)
        grad_q = _plus_dot(grad_q, ds_operand, k)
        sum_k = _plus_dot(sum_k, p_operand, k)
        key += BLOCK_KEYS
        k_at += BLOCK_KEYS * tl.cast(k_strides[2], tl.int64)
        v_at += BLOCK_KEYS * tl.cast(v_strides[2], tl.int64)
    # A query that sees no key has no weights, and no gradient.
    norm = tl.where(sum_p == 0.0, 0.0, 1.0 / sum_p)
    excess = sum_ds * norm
    # Taken out at the mean of k as the dots saw it: what rounding the operands adds to all keys alike goes with it.
    share = ((excess - grad_lse) * sum_sloped - lost) / tl.where(sum_operand == 0.0, 1.0, sum_operand)
    grad_q = (grad_q - share[:, None] * sum_k) * (norm * scale)[:, None]
    tl.store(grad_q_ptr + out_at, grad_q, mask=mask)
    tl.store(delta_ptr + row, delta + excess, mask=inside)
    tl.store(norm_ptr + row, norm, mask=inside)


@triton.jit
def _grad_key_kernel(
    q_ptr, k_ptr, v_ptr, grad_ptr, lse_ptr, grad_lse_ptr, grad_k_ptr, grad_v_ptr, delta_ptr, norm_ptr,
    cu_seqlens_q_ptr, cu_seqlens_k_ptr,
    q_strides, k_strides, v_strides, grad_strides, lse_strides, grad_lse_strides, grad_k_strides,
    sequences, kv_heads, group, queries, keys, dim, scale, softcap,
    CAUSAL: tl.constexpr, CAPPED: tl.constexpr, VARLEN: tl.constexpr,
    GROUP: tl.constexpr, BLOCK_QUERIES: tl.constexpr, BLOCK_KEYS: tl.constexpr, BLOCK_DIM: tl.constexpr,
):  # fmt: skip
    sequence, kv_head, start = _task(tl.program_id(0), cu_seqlens_k_ptr, sequences, kv_heads, keys, BLOCK_KEYS, VARLEN)
    kv_head = tl.cast(kv_head, tl.int64)
    first_query, queries = _extent(cu_seqlens_q_ptr, sequence, queries, VARLEN)
    first_key, keys = _extent(cu_seqlens_k_ptr, sequence, keys, VARLEN)
    if start >= keys:
        return
    rows = tl.arange(0, BLOCK_QUERIES * GROUP)
    lanes = tl.arange(0, BLOCK_DIM)
    in_dim = (lanes < dim)[None, :]
    lanes = lanes.to(tl.int64)
    key = start + tl.arange(0, BLOCK_KEYS)
    in_tile = (key < keys)[:, None] & in_dim
    token = first_key + key.to(tl.int64)
    k = tl.load(k_ptr + _vectors(k_strides, sequence, kv_head, token, lanes), mask=in_tile, other=0.0)
    v = tl.load(v_ptr + _vectors(v_strides, sequence, kv_head, token, lanes), mask=in_tile, other=0.0)

    grad_k = tl.zeros([BLOCK_KEYS, BLOCK_DIM], tl.float32)
    grad_v = tl.zeros([BLOCK_KEYS, BLOCK_DIM], tl.float32)
    begin = 0
    if CAUSAL:
        begin = tl.maximum(start + queries - keys, 0) // BLOCK_QUERIES * BLOCK_QUERIES
    for block in range(0, group, GROUP):
        member = block + rows % GROUP
        head = (kv_head * group + member).to(tl.int64)
        query = begin + rows // GROUP
        place = first_query + query.to(tl.int64)
        q_at = q_ptr + _vectors(q_strides, sequence, head, place, lanes)
        grad_at = grad_ptr + _vectors(grad_strides, sequence, head, place, lanes)
        row = _numbers(lse_strides, sequence, head, place)
        grad_lse_at = grad_lse_ptr + _numbers(grad_lse_strides, sequence, head, place)
        for _ in range(begin, queries, BLOCK_QUERIES):
            inside = (query < queries) & (member < group)
            mask = inside[:, None] & in_dim
            # Rows that are not inside have zeros for q and grad, which add nothing.
            q = tl.load(q_at, mask=mask, other=0.0)
            grad = tl.load(grad_at, mask=mask, other=0.0)
            lse = tl.load(lse_ptr + row, mask=inside, other=0.0)[:, None]
            delta = tl.load(delta_ptr + row, mask=inside, other=0.0)[:, None]
            norm = tl.load(norm_ptr + row, mask=inside, other=0.0)[:, None]
            grad_lse = tl.load(grad_lse_at, mask=inside, other=0.0)[:, None]
            seen = key[None, :] <= _last_seen(query, queries, keys, CAUSAL)[:, None]
            p, centred, sloped = _weights(q, k, v, grad, lse, delta, seen, scale, softcap, CAPPED)
            p = (p * norm).to(grad.dtype)
            # Added here, and not to delta, of which a small grad_lse would lose its last bits.
            ds = sloped * norm * (centred + grad_lse)
            lift = _lift(tl.max(tl.abs(ds), 0))
            grad_v = _plus_dot(grad_v, tl.trans(p), grad)
            grad_k += tl.dot(tl.trans((ds * lift[None, :]).to(q.dtype)), q, input_precision="ieee") / lift[:, None]
            query += BLOCK_QUERIES
            q_at += BLOCK_QUERIES * tl.cast(q_strides[2], tl.int64)
            grad_at += BLOCK_QUERIES * tl.cast(grad_strides[2], tl.int64)
            row += BLOCK_QUERIES * tl.cast(lse_strides[2], tl.int64)
            grad_lse_at += BLOCK_QUERIES * tl.cast(grad_lse_strides[2], tl.int64)

    grad_at = _vectors(grad_k_strides, sequence, kv_head, token, lanes)
    tl.store(grad_k_ptr + grad_at, grad_k * scale, mask=in_tile)
    tl.store(grad_v_ptr + grad_at, grad_v, mask=in_tile)


Options = tuple[bool, float, float | None]  # causal, softcap, scale
Offsets = tuple[torch.Tensor, torch.Tensor]  # where the sequences of q, and of k and v, begin


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, options: Options, offsets: Offsets | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attend from q `[..., heads, queries, head_dim]` to k and v `[..., kv_heads, keys, head_dim]`.

    With offsets, both `[sequences + 1]`, q is `[total_q, heads, head_dim]`, k and v `[total_k, kv_heads, head_dim]`.

    Returns:
        The output, of q's shape and dtype, and the log of the sum of exponentials, in float32 and without head_dim.
    """
    _check(q, k, v, options[1], offsets)
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    lse = torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
    if q.numel():
        _launch(_forward_kernel, (q, k, v, out, lse), (), options, offsets)
    return out, lse


def backward(
    grad: torch.Tensor | None,
    grad_lse: torch.Tensor | None,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    options: Options,
    offsets: Offsets | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of q, k and v; an upstream gradient that is None counts as zeros."""
    grad = out.new_zeros(()).expand(out.shape) if grad is None else grad
    grad_lse = lse.new_zeros(()).expand(lse.shape) if grad_lse is None else grad_lse
    grad_q, grad_k, grad_v = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))
    out, lse = out.contiguous(), lse.contiguous()
    delta, norm = torch.empty_like(lse), torch.empty_like(lse)
    if q.numel():
        tensors = (q, k, v, grad, out, lse, grad_lse)
        _launch(_grad_query_kernel, tensors, (grad_q, delta, norm), options, offsets)
    if k.numel():
        tensors = (q, k, v, grad, lse, grad_lse, grad_k)
        _launch(_grad_key_kernel, tensors, (grad_v, delta, norm), options, offsets, over_keys=True)
    return grad_q, grad_k, grad_v


def _launch(
    kernel: Any, tensors: tuple[torch.Tensor, ...], alike: tuple[torch.Tensor, ...], options: Options,
    offsets: Offsets | None, *, over_keys: bool = False,
) -> None:  # fmt: skip
    """Launch a kernel with a program for each tile of queries of some heads, or of keys of a key head.

    Args:
        tensors: q, k, and others that are laid out each in its own way.
        alike: Those that are laid out as one of them.
    """
    causal, softcap, scale = options
    views = [_by_sequence(x, 3 if x.dim() == tensors[0].dim() else 2, offsets) for x in tensors]
    (sequences, heads, queries, dim), (_, kv_heads, keys, _) = views[0].shape, views[1].shape
    shared = min(triton.next_power_of_2(heads // kv_heads), MOST_HEADS)
    block_dim = triton.next_power_of_2(dim)
    block_keys = max(16, min(MOST_KEYS, TILE_BYTES // (block_dim * views[0].element_size())))
    length, block = (keys, block_keys) if over_keys else (queries, BLOCK_QUERIES)
    tiles = sequences * triton.cdiv(length, block) if offsets is None else length // block + sequences
    blocks = 1 if over_keys else triton.cdiv(heads // kv_heads, shared)
    with torch.cuda.device_of(views[0]):
        kernel[(tiles * kv_heads * blocks,)](
            *views,
            *alike,
            *((x.contiguous() for x in offsets) if offsets else views[:2]),  # without offsets these are never read
            *(x.stride() for x in views),
            sequences, kv_heads, heads // kv_heads, queries, keys, dim, dim**-0.5 if scale is None else scale, softcap,
            CAUSAL=causal, CAPPED=softcap != 0.0, VARLEN=offsets is not None,
            GROUP=shared, BLOCK_QUERIES=BLOCK_QUERIES, BLOCK_KEYS=block_keys, BLOCK_DIM=block_dim, num_stages=2,
        )  # fmt: skip


def _by_sequence(x: torch.Tensor, rank: int, offsets: Offsets | None) -> torch.Tensor:
    """View x as `[sequence, head, token, ...]`, of rank 3 with head_dim and 2 without; copy where there is no view.

    Packed tensors are the same for every sequence: stride 0.
    """
    if offsets is None:
        return x.reshape(math.prod(x.shape[:-rank]), *x.shape[-rank:])
    heads = x.transpose(0, 1)
    return heads.expand(offsets[0].shape[0] - 1, *heads.shape)


def _check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, softcap: float, offsets: Offsets | None) -> None:
    """Raise TypeError or ValueError for what the kernels do not take."""
    op, axis = ("attention", -3) if offsets is None else ("attention_varlen", 1)
    check_inputs(op, q=q, k=k, v=v)
    shapes = f"{op}: q {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)}"
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"{op}: q {q.dtype}, k {k.dtype} and v {v.dtype} should have one dtype")
    if q.dim() < 3 or k.dim() != q.dim() or v.shape != k.shape or q.shape[:-3] != k.shape[:-3]:
        raise ValueError(f"{shapes} should have as many dimensions, three or more, and k and v one shape")
    heads, kv_heads, dim = q.shape[axis], k.shape[axis], q.shape[-1]
    if not heads or not kv_heads or heads % kv_heads:
        raise ValueError(f"{shapes}: the {heads} heads of q should be a multiple of the {kv_heads} of k")
    if dim != k.shape[-1] or dim % DIM_STEP or not LEAST_DIM <= dim <= MOST_DIM:
        raise ValueError(f"{shapes} should have one head_dim, {LEAST_DIM} to {MOST_DIM} and a multiple of {DIM_STEP}")
    if not 0.0 <= softcap < math.inf:
        raise ValueError(f"{op}: softcap is {softcap}, it should be 0, for none, or positive")
    if offsets is not None:
        _check_offsets(q, offsets)


def _check_offsets(q: torch.Tensor, offsets: Offsets) -> None:
    cu_seqlens_q, cu_seqlens_k = offsets
    if q.dim() != 3:
        raise ValueError(f"attention_varlen: q is {list(q.shape)}, it should be [total_q, heads, head_dim]")
    for name, x in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        if x.dtype != torch.int32 or x.dim() != 1 or x.shape[0] < 2 or x.device != q.device:
            raise ValueError(
                f"attention_varlen: {name} is {x.dtype} {list(x.shape)} on {x.device}, it should be int32 "
                f"[sequences + 1] on {q.device}, for at least one sequence"
            )
    if cu_seqlens_q.shape != cu_seqlens_k.shape:
        raise ValueError(
            f"attention_varlen: cu_seqlens_q {list(cu_seqlens_q.shape)} and cu_seqlens_k {list(cu_seqlens_k.shape)} "
            "should be of the same sequences"
        )
