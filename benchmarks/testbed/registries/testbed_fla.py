"""fla-core 0.6.0: norms, activations, cross entropy, token shift and chunked linear attention."""

import torch
from fla.modules.activations import logsigmoid as fla_logsigmoid
from fla.modules.activations import swiglu as fla_swiglu
from fla.modules.fused_cross_entropy import cross_entropy_loss as fla_cross_entropy
from fla.modules.l2norm import l2norm as fla_l2norm
from fla.modules.layernorm import rms_norm as fla_rms_norm
from fla.modules.token_shift import token_shift as fla_token_shift
from fla.ops.simple_gla import chunk_simple_gla as fla_chunk_simple_gla

from opcheck import Case, Sample, adopt

IGNORED = -100


def l2norm(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Compute `x * rsqrt(sum(x^2) + eps)`."""
    return fla_l2norm(x, eps)


def l2norm_golden(x, eps=1e-6):
    """Compute `x / sqrt(sum(x^2) + eps)`."""
    return x / torch.sqrt(x.square().sum(-1, keepdim=True) + eps)


class _L2Norm(torch.autograd.Function):
    """The norm in float32 whose backward starts from the rounded output, which is what is kept."""

    @staticmethod
    def forward(ctx, x, eps):
        rstd = torch.rsqrt(x.float().square().sum(-1, keepdim=True) + eps)
        y = (x.float() * rstd).to(x.dtype)
        ctx.save_for_backward(y, rstd)
        return y

    @staticmethod
    def backward(ctx, grad):
        y, rstd = ctx.saved_tensors
        y, dy = y.float(), grad.float()
        return (dy * rstd - (dy * y).sum(-1, keepdim=True) * y * rstd).to(grad.dtype), None


def l2norm_reference(x, eps=1e-6):
    """Do the same in float32; the op keeps its output for backward, and so does this."""
    return _L2Norm.apply(x, eps)


def l2norm_samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"), eps=1e-6)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Compute `x * rsqrt(mean(x^2) + eps) * weight + bias`."""
    return fla_rms_norm(x, weight, bias, eps=eps)


def rms_norm_golden(x, weight, bias, eps=1e-5):
    """Compute `x / sqrt(mean(x^2) + eps) * weight + bias`."""
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight + bias


def rms_norm_reference(x, weight, bias, eps=1e-5):
    """Do the same in float32 and round once."""
    return rms_norm_golden(x.float(), weight.float(), bias.float(), eps).to(x.dtype)


def rms_norm_samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`, weight and bias `[cols]`."""
    return Sample(
        case.tensor("...", "rows", "cols", name="x"),
        case.tensor("cols", name="weight"),
        case.tensor("cols", name="bias"),
    )


def logsigmoid(x: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """Compute `log(sigmoid(x)) / temperature`."""
    return fla_logsigmoid(x, temperature)


def logsigmoid_golden(x, temperature=1.0):
    """Compute `-log(exp(0) + exp(-x))`."""
    return -torch.logaddexp(torch.zeros_like(x), -x) / temperature


def logsigmoid_reference(x, temperature=1.0):
    """Take torch's in float32 and round once."""
    return (torch.nn.functional.logsigmoid(x.float()) / temperature).to(x.dtype)


def logsigmoid_samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))


def swiglu(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compute `silu(x) * y`."""
    return fla_swiglu(x, y)


def swiglu_golden(x, y):
    """Compute `x * sigmoid(x) * y`."""
    return x * torch.sigmoid(x) * y


def swiglu_reference(x, y):
    """Do the same in float32 and round once."""
    return swiglu_golden(x.float(), y.float()).to(x.dtype)


def swiglu_samples(case: Case) -> Sample:
    """Draw x and y `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"), case.tensor("...", "rows", "cols", name="y"))


def cross_entropy(logits: torch.Tensor, target: torch.Tensor, label_smoothing: float = 0.0) -> torch.Tensor:
    """Return the loss of each row, in float32."""
    return fla_cross_entropy(logits, target, label_smoothing, ignore_index=IGNORED)[0]


def cross_entropy_golden(logits, target, label_smoothing=0.0):
    """Compute `(1 - e) (lse - x[t]) + e (lse - mean(x))`; ignored rows are 0."""
    kept = target != IGNORED
    x = logits[kept]
    largest = x.amax(-1, keepdim=True).detach()
    lse = largest.squeeze(-1) + (x - largest).exp().sum(-1).log()
    losses = (1 - label_smoothing) * (lse - x.gather(1, target[kept][:, None])[:, 0])
    if label_smoothing:
        losses = losses + label_smoothing * (lse - x.mean(1))
    return torch.zeros_like(kept, dtype=losses.dtype).index_put((kept,), losses)


def cross_entropy_reference(logits, target, label_smoothing=0.0):
    """Do the same in float32; the loss stays float32."""
    return cross_entropy_golden(logits.float(), target, label_smoothing)


def cross_entropy_samples(case: Case) -> Sample:
    """Draw logits `[rows, classes]` and classes; every third row, from the second on, is ignored."""
    logits = case.tensor("rows", "classes", name="logits")
    target = case.integers(0, max(case.dims["classes"], 1), "rows", name="target")
    target[1::3] = IGNORED
    return Sample(logits, target)


def token_shift(x: torch.Tensor) -> torch.Tensor:
    """Compute what the token before it is more than each token."""
    return fla_token_shift(x)


def token_shift_golden(x):
    """Shift by one token, from zeros, and subtract."""
    return torch.cat((torch.zeros_like(x[:, :1]), x[:, :-1]), 1) - x


def token_shift_samples(case: Case) -> Sample:
    """Draw x `[batch, seq, dim]`."""
    return Sample(case.tensor("batch", "seq", "dim", name="x"))


def chunk_simple_gla(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """Apply linear attention with a scalar decay for each head, chunk by chunk."""
    return fla_chunk_simple_gla(q, k, v, g)[0]


def chunk_simple_gla_golden(q, k, v, g):
    """Compute `sum_{j <= i} exp(G_i - G_j) (q_i . k_j) v_j / sqrt(dim)`, G the running sum of g."""
    return torch.einsum("bijh,bjhe->bihe", _scores(q, k, g), v)


def chunk_simple_gla_reference(q, k, v, g):
    """Do the same in float32, the scores rounded before they meet v, as on tensor cores; round once more."""
    scores = _scores(q.float(), k.float(), g.float()).to(q.dtype).float()
    return torch.einsum("bijh,bjhe->bihe", scores, v.float()).to(q.dtype)


def _scores(q, k, g):
    """Return `exp(G_i - G_j) (q_i . k_j) / sqrt(dim)`, 0 where j > i."""
    total = g.cumsum(1)
    ahead = total[:, :, None] - total[:, None]
    causal = torch.ones(ahead.shape[1:3], dtype=torch.bool, device=g.device).tril()[None, :, :, None]
    decay = ahead.masked_fill(~causal, float("-inf")).exp()
    return torch.einsum("bihd,bjhd->bijh", q, k) * decay * q.shape[-1] ** -0.5


def chunk_simple_gla_samples(case: Case) -> Sample:
    """Draw q, k, v `[batch, seq, heads, dim]`, and decays `[batch, seq, heads]` as logsigmoid gives them."""
    q, k, v = (case.tensor("batch", "seq", "heads", "dim", name=name) for name in "qkv")
    g = case.tensor("batch", "seq", "heads", name="g")
    return Sample(q, k, v, torch.nn.functional.logsigmoid(g.float()).to(g.dtype))


for _op in (l2norm, rms_norm, logsigmoid, swiglu, cross_entropy, token_shift, chunk_simple_gla):
    _name, _given = _op.__name__, globals()
    adopt(
        _op,
        name=f"fla::{_name}",
        reference=_given.get(f"{_name}_reference", _given[f"{_name}_golden"]),
        golden=_given[f"{_name}_golden"],
        samples=_given[f"{_name}_samples"],
    )
