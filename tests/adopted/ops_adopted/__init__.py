"""Adopts what `outside` has, and operators of torch's own."""

import functools

import outside
import torch

from opcheck import Sample, adopt


def one(case):
    return Sample(case.tensor("n", name="x"))


adopt(
    torch.ops.outside.scale,
    reference=lambda x, factor: x * factor,
    golden=lambda x, factor: x * factor,
    samples=lambda case: Sample(case.tensor("n", name="x"), 0.5),
)


def shifted(x, by):
    x.add_(by)


adopt(
    outside.shift_,
    reference=shifted,
    golden=shifted,
    samples=lambda case: Sample(case.tensor("n", name="x"), 0.25),
)


def split(x):
    middle = x.shape[0] // 2
    return x[:middle].clone(), x[middle:].clone()


adopt("outside::halves", reference=split, golden=split, samples=one)
adopt(torch.ops.outside.nowhere, reference=torch.neg, golden=torch.neg, samples=one)


def weighted(x, weight):
    return x * weight, None


adopt(
    outside.Weighted.apply,
    reference=weighted,
    golden=weighted,
    samples=lambda case: Sample(case.tensor("n", name="x"), weight=case.tensor(name="weight")),
)
adopt(outside.Square, reference=lambda x: x * x, golden=lambda x: x * x, samples=one)
adopt(outside.Gate(), reference=torch.nn.functional.silu, golden=lambda x: x * torch.sigmoid(x), samples=one)


def added(x, others):
    return x + 0.5 * others[0] + 0.5 * others[1]


adopt(
    functools.partial(outside.add, alpha=0.5),
    name="mine::add",
    reference=added,
    samples=lambda case: Sample(
        case.tensor("n", name="x"), [case.tensor("n", name="others[0]"), case.tensor("n", name="others[1]")]
    ),
)


def doubled(x, y):
    x.copy_(y * 2)


adopt(
    outside.overwrite,
    mutates_args=["x"],
    reference=doubled,
    golden=doubled,
    samples=lambda case: Sample(case.tensor("n", name="x"), case.tensor("n", name="y")),
)


def normalized(x, shape, weight, bias):
    x32 = x.to(torch.float32 if x.dtype != torch.float64 else x.dtype)
    mean = x32.mean(-1, keepdim=True)
    centred = x32 - mean
    return (centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * weight + bias).to(x.dtype)


adopt(
    torch.ops.aten.layer_norm,
    reference=normalized,
    golden=normalized,
    samples=lambda case: Sample(
        case.tensor("rows", "cols", name="input"),
        [case.dims["cols"]],
        case.tensor("cols", name="weight"),
        case.tensor("cols", name="bias"),
    ),
)
adopt(
    torch.ops.aten.softmax.int,
    reference=lambda x, dim: torch.exp(x - torch.logsumexp(x, dim, keepdim=True)),
    samples=lambda case: Sample(case.tensor("rows", "cols", name="self"), -1),
)
