"""Kernels of which one of each pair does not build, does not fit, or does not compute as its author thinks."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

FIT, LARGE = (triton.Config({"BLOCK": 64}, num_stages=stages) for stages in (2, 16))


@triton.jit
def mismatched_kernel(x, y, NARROW: tl.constexpr):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    a = tl.load(x + at).to(tl.float16)
    b = tl.load(x + at)
    if NARROW:
        b = b.to(tl.float16)
    tl.store(y + at, tl.dot(a, b))


@triton.jit
def block_kernel(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def pipeline_kernel(x, y, k, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)
    out = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        depth = start + tl.arange(0, BLOCK)
        a = tl.load(x + row[:, None] * k + depth[None, :])
        b = tl.load(x + depth[:, None] + row[None, :] * k)
        out = tl.dot(a, b, out)
    tl.store(y + row[:, None] * k + row[None, :], out.to(tl.float16))


tuned_kernel = {
    "wrong": triton.autotune([LARGE, LARGE], key=[])(pipeline_kernel),
    "right": triton.autotune([FIT, LARGE], key=[])(pipeline_kernel),
}


@triton.jit
def widened(v, WIDE: tl.constexpr):
    if WIDE:
        v = v.to(tl.float64)
    return v * 1.5


@triton.jit
def double_kernel(x, y, n, WIDE: tl.constexpr):
    at = tl.program_id(0) * 128 + tl.arange(0, 128)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(y + at, widened(v, WIDE).to(tl.float32), mask=at < n)


@triton.jit
def dot_kernel(x, y, PRECISION: tl.constexpr):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    v = tl.load(x + at)
    tl.store(y + at, tl.dot(v, v, input_precision=PRECISION))


@triton.jit
def atomic_kernel(x, y, n):
    at = tl.program_id(0) * 128 + tl.arange(0, 128)
    tl.atomic_add(y + at % 8, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def sum_kernel(x, y, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    v = tl.load(x + at)
    tl.store(y + at, v - tl.sum(v, axis=0)[None, :] - tl.sum(v, axis=1)[:, None])


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"))


def register(name, launch):
    @opcheck.register(name, reference=torch.clone, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros_like(x)
        launch(x, y)
        return y

    op.register_fake(torch.empty_like)
    op.register_autograd(lambda ctx, grad: grad.clone())


def stop(x, y):
    block_kernel[(1,)](x, y, BLOCK=128)
    if not y.any():
        raise ValueError("the kernel wrote nothing")


for twin in ("wrong", "right"):
    bad = twin == "wrong"

    def pair(name, launch, twin=twin):
        register(f"{twin}::{name}", launch)

    pair("mismatched", lambda x, y, bad=bad: mismatched_kernel[(1,)](x, y, NARROW=not bad))
    pair("odd_block", lambda x, y, bad=bad: block_kernel[(1,)](x, y, BLOCK=96 if bad else 128))
    pair("stages", lambda x, y, bad=bad: pipeline_kernel[(1,)](
        x, y, x.shape[1], BLOCK=64, num_stages=16 if bad else 2))  # fmt: skip
    pair("double", lambda x, y, bad=bad: double_kernel[(1,)](x, y, x.numel(), WIDE=bad))
    pair("tf32", lambda x, y, bad=bad: dot_kernel[(1,)](x, y, PRECISION="tf32" if bad else "ieee"))
    pair("atomics", lambda x, y, bad=bad: atomic_kernel[(1,)](x, y if bad else y.float(), x.numel()))
    pair("spills", lambda x, y, bad=bad: sum_kernel[(1,)](x, y, SIZE=128, num_warps=1 if bad else 8))
    pair("tuned", lambda x, y, twin=twin: tuned_kernel[twin][(1,)](x, y, x.shape[1]))

register("allowed::tf32", lambda x, y: dot_kernel[(1,)](x, y, PRECISION="tf32"))
register("other::no_kernel", lambda x, y: y.copy_(x))
register("other::stops", stop)
register("other::off", lambda x, y: block_kernel[(1,)](x, y, BLOCK=96))
register("other::old", lambda x, y: block_kernel[(1,)](x, y, BLOCK=256))
