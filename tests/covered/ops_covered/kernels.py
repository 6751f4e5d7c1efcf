"""Kernels of which the tests expect lines by their numbers: what is moved here must be counted again there."""

import triton
import triton.language as tl


@triton.jit
def clipped(v, LIMIT: tl.constexpr):
    """Clip `v`, where there is a limit."""
    if LIMIT > 0:
        v = tl.minimum(v, LIMIT)
        v = tl.maximum(v, -LIMIT)
    return v


@triton.jit
def scaled(x, y, n, LIMIT: tl.constexpr, TWICE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + at, mask=inside, other=0.0)
    if TWICE:
        v = v * 2.0
    else:
        v = v * 1.0
        v = v + 0.0
    tl.store(
        y + at,
        clipped(v, LIMIT),
        mask=inside,
    )


@triton.jit
def larger(a, b):
    first = a > b
    return tl.where(first, a, b)


@triton.jit
def peak(x, y, rows, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.load(x + row * n + at, at < n, other=float("-inf")))
    value = tl.reduce(best, 0, larger)
    if n < 0: value = -value  # noqa: E701 (two statements of one line)  # fmt: skip
    tl.store(y + row, value, mask=row < rows)


@triton.jit
def guarded(x, y, n, mode, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if mode == 1:  # opcheck: no cover
        tl.store(y + at, at, mask=at < n)
        return
    if mode == 2:
        v = tl.load(x + at)
    elif mode == 3:
        v = tl.load(x + at, mask=at < n)
    else:  # opcheck: no cover
        v = tl.full([BLOCK], 0.0, tl.float32)
        v = v + 1.0
    # opcheck: no cover
    tl.atomic_add(y + at, v, mask=at < n)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 8}, num_warps=1),
        triton.Config({"BLOCK": 8}, num_warps=2),
        triton.Config({"BLOCK": 16}),
        triton.Config({"BLOCK": 32}),
    ],
    key=["n"],
    prune_configs_by={"early_config_prune": lambda configs, args, **_: configs[:3]},
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def copied(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(y + at, tl.load(x + at))
    else:
        tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def forgotten(x, y):
    v = tl.load(x)
    tl.store(y, v)


@triton.jit
def parked(x, y):  # opcheck: no cover
    tl.store(y, tl.load(x))
