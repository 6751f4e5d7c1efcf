"""Right targets beside references and goldens that are not fit to judge by."""

import torch

from ._double import golden, reference, register


class BackwardRaises(torch.autograd.Function):
    """Double in the forward, raise in the backward."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("this reference has no backward yet")


class BackwardNarrows(torch.autograd.Function):
    """Double in FP64, and take the gradient through float32."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad.float().to(grad.dtype) * 2


def raises(x):
    raise ValueError("this reference is not written yet")


def narrows(x):
    return x.float() * 2


def longer(x):
    return torch.cat((golden(x), golden(x)))


@register("bad::reference_raises", reference=raises)
def reference_raises(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::reference_raises_backward", reference=BackwardRaises.apply)
def reference_raises_backward(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::reference_exits", reference=lambda x: exit(0))
def reference_exits(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::reference_text", reference=lambda x: "2 * x")
def reference_text(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::reference_itself", reference=lambda x: torch.ops.bad.reference_itself(x))
def reference_itself(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@register("bad::golden_itself", golden=lambda x: torch.ops.bad.golden_itself(x))
def golden_itself(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::golden_narrows", golden=narrows)
def golden_narrows(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::golden_narrows_backward", golden=BackwardNarrows.apply)
def golden_narrows_backward(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::golden_longer", golden=longer)
def golden_longer(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::golden_pair", golden=lambda x: (reference(x), reference(x)))
def golden_pair(x: torch.Tensor) -> torch.Tensor:
    return x * 2
