"""Right targets whose `samples` does not give what they take."""

import torch

from opcheck import Sample

from ._double import register


def raises(case):
    raise KeyError("rows")


@register("bad::samples_none", samples=lambda case: None)
def samples_none(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::samples_tuple", samples=lambda case: (case.tensor("n", name="x"),))
def samples_tuple(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::samples_keyword", samples=lambda case: Sample(case.tensor("n", name="x"), scale=2.0))
def samples_keyword(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::samples_twice", samples=lambda case: Sample(case.tensor("n", name="x"), x=case.tensor("n", name="x")))
def samples_twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::samples_too_many", samples=lambda case: Sample(case.tensor("n", name="x"), 2.0))
def samples_too_many(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::samples_empty", samples=lambda case: Sample())
def samples_empty(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::samples_dimension", samples=lambda case: Sample(case.tensor("rows", name="x")))
def samples_dimension(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::samples_dtype", samples=lambda case: Sample(case.tensor("n", name="x", dtype="float33")))
def samples_dtype(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::samples_raises", samples=raises)
def samples_raises(x: torch.Tensor) -> torch.Tensor:
    return x * 2
