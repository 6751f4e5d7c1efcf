"""Gated linear recurrence: Triton kernels and their launches.

Forward: `h[t] = a[t] * h[t - 1] + b[t]`. A step is the pair (a, b), and two steps after one another are the step
`(a2 * a1, a2 * b1 + b2)`, so that steps can be scanned (Blelloch, 1990, section 1.4). Time is cut into chunks: one
kernel reduces each chunk to a step, one runs through these and keeps the state before each chunk, one scans each chunk
from there. No kernel waits for another's programs, and no order is left open.

Backward: `g[t] = dh[t] + a[t + 1] * g[t + 1]`, the same scan from the other end with the gates of the next step, then
`db = g` and `da[t] = g[t] * h[t - 1]`. h is computed again, in float32: a narrow h would put its rounding error into
da.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs

CHUNK = 64
MAX_BLOCK = 64


@triton.jit
def _after(a1, b1, a2, b2):
    """Return the step that does (a1, b1), then (a2, b2)."""
    return a2 * a1, a2 * b1 + b2


@triton.jit
def _places(batches, time, channels, REVERSE: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """Return this program's chunk, lines `[1, BLOCK]`, steps `[CHUNK, 1]`, places `[CHUNK, BLOCK]` and their mask.

    A line is one channel of one batch; they are counted through all batches. Steps are counted from the end of time
    where REVERSE. The grid has one axis, for there may be more lines, and more chunks, than a second one holds.
    """
    chunks = tl.cdiv(time, CHUNK)
    chunk = (tl.program_id(0) % chunks).to(tl.int64)
    line = ((tl.program_id(0) // chunks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, :]
    step = chunk * CHUNK + tl.arange(0, CHUNK)[:, None]
    at = time - 1 - step if REVERSE else step
    place = line + (line // channels * (time - 1) + at) * channels
    return chunk, line, step, place, (step < time) & (line < batches * channels)


@triton.jit
def _gates(a_ptr, step, place, mask, channels, REVERSE: tl.constexpr):
    """Return the gate of each step; reversed it is that of the time after, and 1 where there is none."""
    gate = a_ptr + place + channels if REVERSE else a_ptr + place
    return tl.load(gate, mask=mask & (step > 0) if REVERSE else mask, other=1.0).to(tl.float32)


@triton.jit
def _reduce_kernel(
    a_ptr,
    b_ptr,
    products_ptr,
    sums_ptr,
    batches,
    time,
    channels,
    REVERSE: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    chunk, line, step, place, mask = _places(batches, time, channels, REVERSE, CHUNK, BLOCK)
    inner = tl.arange(0, CHUNK)[:, None]
    own = _gates(a_ptr, step, place, mask, channels, REVERSE)
    following = (step + 1 < time) & (inner + 1 < CHUNK)
    after = tl.load(a_ptr + place if REVERSE else a_ptr + place + channels, mask=mask & following, other=1.0)
    b = tl.load(b_ptr + place, mask=mask, other=0.0).to(tl.float32)
    # The product of all gates of the chunk that come later.
    later = tl.cumprod(after.to(tl.float32), 0, reverse=True)
    whole = tl.where(inner == 0, own * later, 0.0)
    state_at = chunk * batches * channels + line
    mask = line < batches * channels
    tl.store(products_ptr + state_at, tl.sum(whole, 0)[None, :], mask=mask)
    tl.store(sums_ptr + state_at, tl.sum(b * later, 0)[None, :], mask=mask)


@triton.jit
def _carry_kernel(products_ptr, sums_ptr, states_ptr, lines, chunks, BLOCK: tl.constexpr):
    line = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    state = tl.zeros([BLOCK], tl.float32)
    for _ in range(chunks):
        tl.store(states_ptr + line, state, mask=line < lines)
        product = tl.load(products_ptr + line, mask=line < lines, other=0.0)
        state = product * state + tl.load(sums_ptr + line, mask=line < lines, other=0.0)
        products_ptr += lines
        sums_ptr += lines
        states_ptr += lines


@triton.jit
def _apply_kernel(
    a_ptr,
    b_ptr,
    states_ptr,
    h_ptr,
    out_ptr,
    grad_a_ptr,
    batches,
    time,
    channels,
    REVERSE: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    chunk, line, step, place, mask = _places(batches, time, channels, REVERSE, CHUNK, BLOCK)
    a = _gates(a_ptr, step, place, mask, channels, REVERSE)
    b = tl.load(b_ptr + place, mask=mask, other=0.0).to(tl.float32)
    a, b = tl.associative_scan((a, b), 0, _after)
    state_at = chunk * batches * channels + line
    result = a * tl.load(states_ptr + state_at, mask=line < batches * channels, other=0.0) + b
    tl.store(out_ptr + place, result, mask=mask)
    if REVERSE:
        # The state before the first time is 0.
        before = tl.load(h_ptr + place - channels, mask=mask & (step + 1 < time), other=0.0)
        tl.store(grad_a_ptr + place, result * before, mask=mask)


def forward(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Run the recurrence over a and b `[batch, time, channels]`; contiguous, in b's dtype."""
    check_inputs("gated_scan", a=a, b=b)
    if b.dim() != 3 or a.shape != b.shape:
        raise ValueError(
            f"gated_scan: a {list(a.shape)} and b {list(b.shape)} should both be [batch, time, channels], and equal"
        )
    h = torch.empty_like(b, memory_format=torch.contiguous_format)
    if h.numel():
        _scan(a.contiguous(), b.contiguous(), h)
    return h


def backward(grad: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of a and b `[batch, time, channels]`, each in its input's dtype."""
    grad_a, grad_b = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (a, b))
    if b.numel():
        a = a.contiguous()
        h = torch.empty(b.shape, dtype=torch.float32, device=b.device)
        _scan(a, b.contiguous(), h)
        _scan(a, grad.contiguous(), grad_b, h=h, grad_a=grad_a)
    return grad_a, grad_b


def _scan(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor,
    *,
    h: torch.Tensor | None = None,
    grad_a: torch.Tensor | None = None,
) -> None:
    """Scan into `out`; where the states h are given, backwards in time, and the gates' gradient into `grad_a`."""
    batches, time, channels = b.shape
    lines, chunks = batches * channels, triton.cdiv(time, CHUNK)
    block = min(triton.next_power_of_2(lines), MAX_BLOCK)
    blocks, sizes = triton.cdiv(lines, block), (batches, time, channels)
    options = {"REVERSE": h is not None, "CHUNK": CHUNK, "BLOCK": block}
    products, sums, states = (torch.empty(chunks, lines, dtype=torch.float32, device=b.device) for _ in range(3))
    with torch.cuda.device_of(b):
        _reduce_kernel[(chunks * blocks,)](a, b, products, sums, *sizes, **options)
        _carry_kernel[(blocks,)](products, sums, states, lines, chunks, BLOCK=block)
        _apply_kernel[(chunks * blocks,)](a, b, states, h, out, grad_a, *sizes, **options)
