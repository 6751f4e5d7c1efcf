"""The op `covered::scaled`: one kernel, one device function, two arguments that choose its branches."""

import torch
import triton

import opcheck
from opcheck import Sample
from ops_covered.kernels import scaled

BLOCK = 4


def reference(x, twice, limit):
    y = x * (2.0 if twice else 1.0)
    return y.clamp(-limit, limit) if limit else y


def samples(case):
    return Sample(case.tensor("n", name="x"), False, 0)


@opcheck.register("covered::scaled", reference=reference, golden=reference, samples=samples)
def target(x: torch.Tensor, twice: bool, limit: int) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    scaled[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), LIMIT=limit, TWICE=twice, BLOCK=BLOCK)
    return y


@target.register_fake
def _(x, twice, limit):
    return torch.empty_like(x, memory_format=torch.contiguous_format)
