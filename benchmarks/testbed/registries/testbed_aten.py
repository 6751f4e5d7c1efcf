"""PyTorch's own kernels as targets: what every other kernel is measured by."""

import testbed_formulas as formulas
import torch

from opcheck import Case, Sample, adopt


def rows(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Compute softmax over the last dimension."""
    return torch.softmax(x, -1)


def softmax_reference(x):
    """Do the same in float32; torch keeps the output for backward, and so does this."""
    return formulas.RoundedSoftmax.apply(x)


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    """Compute the logarithm of softmax over the last dimension."""
    return torch.log_softmax(x, -1)


def log_softmax_golden(x):
    """Compute `x - max - log(sum(exp(x - max)))`."""
    shifted = x - formulas.largest(x)
    return shifted - shifted.exp().sum(-1, keepdim=True).log()


class _LogSoftmax(torch.autograd.Function):
    """The logarithm of softmax in float32 whose backward starts from the rounded output."""

    @staticmethod
    def forward(ctx, x):
        y = log_softmax_golden(x.float()).to(x.dtype)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        y, dy = ctx.saved_tensors[0].float(), grad.float()
        return (dy - y.exp() * dy.sum(-1, keepdim=True)).to(grad.dtype)


def log_softmax_reference(x):
    """Do the same in float32; torch keeps the output for backward, and so does this."""
    return _LogSoftmax.apply(x)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Normalize the last dimension by mean and variance."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Compute `x * Phi(x)`."""
    return torch.nn.functional.gelu(x, approximate=approximate)


def gelu_golden(x, approximate="none"):
    """Compute it by erfc, which does not cancel far below 0, or by the sigmoid that the tanh form is."""
    if approximate == "none":
        return x * torch.special.erfc(-x * 0.5**0.5) / 2
    return x * torch.sigmoid(2 * (2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))


def gelu_reference(x, approximate="none"):
    """Do the same in float32 and round once."""
    return gelu_golden(x.float(), approximate).to(x.dtype)


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Compute `x @ weight^T + bias`."""
    return torch.nn.functional.linear(x, weight, bias)


def linear_golden(x, weight, bias):
    """Multiply and add."""
    return x @ weight.T + bias


def linear_reference(x, weight, bias):
    """Do the same in float32 and round once."""
    return linear_golden(x.float(), weight.float(), bias.float()).to(x.dtype)


def linear_samples(case: Case) -> Sample:
    """Draw x `[..., rows, k]`, weight `[n, k]` and bias `[n]`."""
    return Sample(
        case.tensor("...", "rows", "k", name="x"),
        case.tensor("n", "k", name="weight"),
        case.tensor("n", name="bias"),
    )


def cumsum(x: torch.Tensor) -> torch.Tensor:
    """Sum up along the last dimension."""
    return torch.cumsum(x, -1)


def cumsum_golden(x):
    """Add up what a triangle leaves of each row."""
    ahead = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool, device=x.device).triu(1)
    return x[..., None, :].masked_fill(ahead, 0).sum(-1)


def cumsum_reference(x):
    """Do the same in float32 and round once."""
    return cumsum_golden(x.float()).to(x.dtype)


def embedding(weight: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Look rows of weight up."""
    return torch.nn.functional.embedding(indices, weight)


def embedding_golden(weight, indices):
    """Index."""
    return weight[indices]


def embedding_reference(weight, indices):
    """Index in float32, so that the gradients add up there, and round once."""
    return weight.float()[indices].to(weight.dtype)


def embedding_samples(case: Case) -> Sample:
    """Draw weight `[rows, dim]` and indices `[tokens]`."""
    weight = case.tensor("rows", "dim", name="weight")
    return Sample(weight, case.integers(0, max(case.dims["rows"], 1), "tokens", name="indices"))


for _op in (softmax, log_softmax, gelu, cumsum):
    _name = _op.__name__
    _given = {**vars(formulas), **globals()}
    adopt(
        _op,
        name=f"native::{_name}",
        reference=_given[f"{_name}_reference"],
        golden=_given[f"{_name}_golden"],
        samples=rows,
    )
for _op in (layer_norm, linear, embedding):
    _name = _op.__name__
    _given = {**vars(formulas), **globals()}
    adopt(
        _op,
        name=f"native::{_name}",
        reference=_given[f"{_name}_reference"],
        golden=_given[f"{_name}_golden"],
        samples=_given[f"{_name}_samples"],
    )
