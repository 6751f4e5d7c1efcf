"""Planted faults: what is right, what the target does, and by hand the words that name it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Compute = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planted fault.

    Attributes:
        kind: The kind of hypothesis that names it.
        words: Part of the right diagnosis.
        tensor: Where the fault shows.
        options: Of `failures`.
    """

    name: str
    kind: str
    right: Compute
    target: Compute
    words: str
    tensor: str = "out"
    options: Mapping[str, Any] = field(default_factory=dict)


def backward(forward: Compute, gradient: Compute) -> Compute:
    """Return an op with a backward of its own: `gradient(grad, *inputs)` gives one gradient or all."""

    class Planted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            return forward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return gradient(grad, *ctx.saved_tensors)

    names = forward.__code__.co_argcount
    return Planted.apply if names else forward


def scaled(x):
    return 3.0 * x


def added(x, y):
    return x + y


def multiplied(x, y):
    return x * y


def softmax(x):
    return x.softmax(-1)


def summed(x):
    return x.sum(-1)


def squares(x):
    return (x * x).sum(-1)


def rms_norm(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def layer_norm(x):
    return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)


def variance(x):
    return x.var(-1, unbiased=True)


def transposed(square):
    return square * 1.5


def cast(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    """Return a rounding to a type and back."""
    return lambda value: value.to(dtype).to(value.dtype)


half, brain = cast(torch.float16), cast(torch.bfloat16)


def changed(right: Compute, change: Callable[[Tensor], Tensor]) -> Compute:
    """Return `right` with its result changed; the change has no gradient, so that gradients stay right."""
    return lambda *inputs: (lambda out: out + (change(out.detach().clone()) - out.detach()))(right(*inputs))


def at(index: Any, value: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a change of some elements alone."""

    def change(out: Tensor) -> Tensor:
        out[index] = value(out[index])
        return out

    return change


def running(dtype: torch.dtype) -> Compute:
    """Return a sum over the last axis, `[rows, cols]` to `[rows]`, whose accumulator is of a type."""

    def total(x: Tensor) -> Tensor:
        state = torch.zeros(x.shape[0], dtype=dtype)
        for term in x.detach().to(torch.float32).unbind(-1):
            state = (state.float() + term).to(dtype)
        return x.sum(-1) + (state.to(x.dtype) - x.detach().sum(-1))

    return total


def strides_taken(x: Tensor) -> Tensor:
    """Read `[rows, cols]` in the order of memory."""
    flat = torch.as_strided(x.detach(), (x.numel(),), (1,), x.storage_offset()).reshape(x.shape)
    return 3.0 * (x + (flat - x.detach()))


def unstable(x: Tensor) -> Tensor:
    """Softmax whose maximum is bounded by 8."""
    shifted = x.clamp(-8.0, 8.0)
    return shifted.softmax(-1)


def softmax_gradient(keep: Callable[[Tensor, Tensor], Tensor]) -> Compute:
    """Return a softmax with a gradient made of p and the upstream gradient."""
    return backward(lambda x: x.softmax(-1), lambda grad, x: keep(x.softmax(-1), grad))


def first_only(grad: Tensor) -> Tensor:
    """Return what a kernel reads that takes the upstream gradient for one number."""
    return grad.reshape(-1)[0].expand_as(grad)


everything = slice(None)
WIDE = {"sizes": {"rows": 6, "cols": 130}}
HALF = {"dtype": "float16"}
POSITIVE = {"values": "large_mean"}


def fault(
    name: str, kind: str, right: Compute, target: Compute, words: str, tensor: str = "out", **options: Any
) -> Fault:
    return Fault(name=name, kind=kind, right=right, target=target, words=words, tensor=tensor, options=options)


def placed(
    name: str, index: Any, words: str, value: Callable[[Tensor], Tensor] = lambda part: part + 1, **more: Any
) -> Fault:
    return fault(name, "indexing", scaled, changed(scaled, at(index, value)), words, **more)


def whole(
    name: str, right: Compute, change: Callable[[Tensor], Tensor], words: str, kind: str = "indexing", **more: Any
) -> Fault:
    return fault(name, kind, right, changed(right, change), words, **more)


INDEXING = (
    placed("tail of a tile of 128", (everything, slice(128, None)), "the tail of cols (cols % 128 = 2", **WIDE),
    placed("tail of a tile of 32", (everything, slice(32, None)), "the tail of cols (cols % 32 = 8"),
    placed("tail of rows", slice(8, None), "the tail of rows (rows % 8 = 4"),
    placed(
        "a lane of each tile of 8", (everything, slice(3, None, 8)), "a stripe of period 8 along cols (index % 8 is 3)"
    ),
    placed("one block of 8", (everything, slice(16, 24)), "whole blocks of 8 along cols (block 2)"),
    placed("a program of 4 rows", slice(4, 8), "whole blocks of 4 along rows (block 1)"),
    whole("transposed", transposed, lambda out: out.T.clone(), "golden with side and twin transposed"),
    whole(
        "written in the other order",
        scaled,
        lambda out: out.T.reshape(out.shape),
        "golden with rows and cols transposed",
    ),
    whole("shifted by one", scaled, lambda out: out.roll(1, -1), "golden shifted by 1 along cols"),
    whole("shifted back by three", scaled, lambda out: out.roll(-3, -1), "golden shifted by -3 along cols"),
    whole("a row too far", scaled, lambda out: out.roll(1, 0), "golden shifted by 1 along rows"),
    whole("reversed", scaled, lambda out: out.flip(-1), "golden with cols in reverse order"),
    whole(
        "the first row for all", scaled, lambda out: out[:1].expand_as(out), "golden of the first of rows in every rows"
    ),
    whole(
        "the first tile again",
        scaled,
        lambda out: out[:, torch.arange(out.shape[1]) % 16],
        "golden's first 16 along cols again and again",
    ),
    placed("never written", (everything, slice(8, 16)), "zeros where golden has none", torch.zeros_like),
)

ACCUMULATORS = (
    fault(
        "sum in float16",
        "accumulator",
        summed,
        running(torch.float16),
        "every value is a float16 number",
        sizes={"rows": 64},
    ),
    fault(
        "sum in bfloat16",
        "accumulator",
        summed,
        running(torch.bfloat16),
        "every value is a bfloat16 number",
        sizes={"rows": 64},
    ),
    fault(
        "sum in bfloat16 of float16",
        "accumulator",
        summed,
        running(torch.bfloat16),
        "every value is a bfloat16 number",
        sizes={"rows": 64, "cols": 64},
        dtype="float16",
    ),
    fault(
        "sum of means in float16",
        "accumulator",
        lambda x: x.mean(-1) * 1.7,
        lambda x: running(torch.float16)(x) / x.shape[-1] * 1.7,
        "an accumulator of about",
        sizes={"rows": 64, "cols": 256},
        reduces=("cols",),
        **POSITIVE,
    ),
)

CASTS = (
    whole("result in bfloat16", scaled, brain, "golden rounded to bfloat16", "cast"),
    whole("result in float16", layer_norm, half, "golden rounded to", "cast"),
    whole("result of float16 in bfloat16", scaled, brain, "golden rounded to bfloat16", "cast", **HALF),
    whole(
        "result in fp8",
        scaled,
        lambda out: out.to(torch.float8_e4m3fn).float(),
        "golden rounded to float8_e4m3fn",
        "cast",
    ),
    whole(
        "result truncated",
        scaled,
        lambda out: (out.view(torch.int32) & -65536).view(torch.float32),
        "golden truncated to bfloat16",
        "cast",
    ),
    fault(
        "inputs in bfloat16",
        "cast",
        squares,
        lambda x: squares(x + (brain(x.detach()) - x.detach())),
        "golden of inputs rounded to bfloat16",
        sizes={"rows": 32},
    ),
    fault(
        "one input in bfloat16",
        "cast",
        lambda x, y: (x * y).sum(-1),
        lambda x, y: (x * (y + (brain(y.detach()) - y.detach()))).sum(-1),
        "golden of y rounded to bfloat16",
    ),
    fault(
        "inputs in float16",
        "cast",
        squares,
        lambda x: squares(x + (half(x.detach()) - x.detach())),
        "golden of inputs rounded to",
        sizes={"rows": 32},
    ),
)

FACTORS = (
    whole("twice", scaled, lambda out: 2 * out, "golden times 2 throughout: added twice", "factor"),
    whole(
        "over the padded size",
        lambda x: x.mean(-1),
        lambda out: out * 40 / 64,
        "cols over its padded size, 40 / 64",
        "factor",
    ),
    whole(
        "not divided by the length",
        lambda x: x.mean(-1),
        lambda out: 40 * out,
        "golden times 40 throughout: cols = 40",
        "factor",
    ),
    whole("biased variance", variance, lambda out: out * 39 / 40, "(cols - 1) / cols with cols = 40", "factor"),
    fault(
        "gradient without the 2",
        "factor",
        squares,
        backward(lambda x: (x * x).sum(-1), lambda grad, x: x * grad[:, None]),
        "golden times 0.5 throughout: a missing factor 2",
        "grad x",
    ),
    fault(
        "gradient of the wrong sign",
        "factor",
        scaled,
        backward(lambda x: 3.0 * x, lambda grad, x: -3.0 * grad),
        "golden times -1 throughout: the sign",
        "grad x",
    ),
    fault(
        "gradient not divided by the length",
        "factor",
        lambda x: x.mean(-1),
        backward(lambda x: x.mean(-1), lambda grad, x: grad[:, None].expand_as(x)),
        "cols = 40",
        "grad x",
    ),
    fault(
        "upstream gradient as a scalar",
        "factor",
        lambda x: x * x,
        backward(lambda x: x * x, lambda grad, x: 2 * x * first_only(grad)),
        "grad_output[0] in the place of all",
        "grad x",
    ),
    fault(
        "upstream gradient forgotten",
        "factor",
        lambda x: x * x,
        backward(lambda x: x * x, lambda grad, x: 2 * x),
        "golden without the factor grad_output",
        "grad x",
    ),
    fault(
        "weight forgotten in the gradient",
        "factor",
        lambda x, weight: x.sin() * weight,
        backward(lambda x, weight: x.sin() * weight, lambda grad, x, weight: (grad * x.cos(), (grad * x.sin()).sum(0))),
        "golden without the factor weight",
        "grad x",
    ),
    fault(
        "weight forgotten",
        "factor",
        rms_norm,
        lambda x, weight: rms_norm(x, torch.ones_like(weight)) + 0 * weight,
        "golden without the factor weight",
    ),
    fault("weight twice", "factor", rms_norm, lambda x, weight: rms_norm(x, weight * weight), "golden times weight"),
)

TERMS = (
    fault("residual forgotten", "term", added, lambda x, y: x + 0 * y, "the term y is missing"),
    fault("half of a term", "term", added, lambda x, y: x + 0.5 * y, "the term 0.5 * y is missing"),
    fault(
        "bias added twice",
        "term",
        lambda x, weight: x.tanh() + weight,
        lambda x, weight: x.tanh() + 2 * weight,
        "the term weight is too much",
    ),
    fault("a constant", "term", scaled, lambda x: scaled(x) + 0.25, "golden +0.25 throughout"),
    fault(
        "upstream gradient of a sum",
        "term",
        lambda x: x + x.tanh(),
        backward(lambda x: x + x.tanh(), lambda grad, x: grad * (1 - x.tanh() ** 2)),
        "the term grad_output is missing",
        "grad x",
    ),
    fault(
        "product forgotten",
        "term",
        lambda x, y: x.tanh() + x * y,
        lambda x, y: x.tanh() + 0 * y,
        "the term x * y is missing",
    ),
    fault(
        "softmax without its sum",
        "term",
        softmax,
        softmax_gradient(lambda p, grad: p * grad),
        "golden and out times one number for all of cols",
        "grad x",
    ),
    fault(
        "mean not subtracted",
        "term",
        lambda x: x - x.mean(-1, keepdim=True),
        lambda x: x + 0.0,
        "golden and one number for all of cols",
    ),
)

OTHERS = (
    fault(
        "gradients swapped",
        "swapped",
        multiplied,
        backward(lambda x, y: x * y, lambda grad, x, y: (grad * x, grad * y)),
        "the values of grad y in its place: swapped",
        "grad x",
    ),
    fault(
        "outputs swapped",
        "swapped",
        lambda x: (x.sin(), x.cos()),
        lambda x: (x.cos(), x.sin()),
        "the values of out 1 in its place: swapped",
        "out 0",
    ),
    fault(
        "gradient passed through",
        "swapped",
        scaled,
        backward(lambda x: 3.0 * x, lambda grad, x: grad.clone()),
        "the values of grad_output in its place: passed through",
        "grad x",
    ),
    fault(
        "input passed through",
        "swapped",
        lambda x: x.sin(),
        lambda x: x + 0.0,
        "the values of x in its place: passed through",
    ),
    fault(
        "tanh GELU",
        "approximation",
        lambda x: functional.gelu(x),
        lambda x: functional.gelu(x, approximate="tanh"),
        "the tanh approximation of GELU of x",
    ),
    fault(
        "quick GELU",
        "approximation",
        lambda x: functional.gelu(x),
        lambda x: x * torch.sigmoid(1.702 * x),
        "the quick GELU, of x",
    ),
    fault(
        "exp by a power",
        "approximation",
        lambda x: x.exp(),
        lambda x: (1 + x / 1024) ** 1024,
        "the error is a smooth curve over x",
    ),
    fault(
        "tanh by a fraction",
        "approximation",
        lambda x: x.tanh(),
        lambda x: x * (27 + x * x) / (27 + 9 * x * x),
        "the error is a smooth curve over x",
    ),
    fault(
        "sine by a series",
        "approximation",
        lambda x: x.sin(),
        lambda x: x - x**3 / 6 + x**5 / 120,
        "the error is a smooth curve over x",
    ),
    fault(
        "strides taken for granted",
        "layout",
        scaled,
        strides_taken,
        "strides of x that are taken for granted",
        layout="x=transposed",
    ),
    fault(
        "an offset taken for granted",
        "layout",
        scaled,
        lambda x: 3.0 * (x + (x.detach().roll(x.storage_offset(), -1) - x.detach())),
        "strides of x",
        layout="x=offset",
    ),
    fault(
        "maximum not subtracted",
        "stabilisation",
        softmax,
        unstable,
        "the values of extreme_logits: right on normal ones",
        values="extreme_logits",
    ),
    fault(
        "one extreme row",
        "stabilisation",
        softmax,
        unstable,
        "wrong exactly where",
        values="outlier_row",
        sizes={"rows": 48},
    ),
    fault(
        "float16 alone",
        "dtype",
        lambda x: x.sin(),
        lambda x: (
            x.sin() * (1 + 0.02 * torch.randn(x.shape, generator=torch.Generator().manual_seed(3))).to(x.dtype)
            if x.dtype is torch.float16
            else x.sin()
        ),
        "the element type: right in float32",
        **HALF,
    ),
)

FAULTS = (*INDEXING, *ACCUMULATORS, *CASTS, *FACTORS, *TERMS, *OTHERS)


def noisy(size: float, seed: int, *, share: float = 1.0) -> Callable[[Tensor], Tensor]:
    """Return a change by relative noise of a size in a random share of the elements."""

    def change(out: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(out.shape, generator=generator).to(out.dtype)
        hit = torch.rand(out.shape, generator=generator) < share
        return out + size * noise * hit * out.abs().mean()

    return change
