"""Liger's losses."""

import torch
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction
from liger_kernel.ops.jsd import LigerJSDFunction
from liger_kernel.ops.kl_div import LigerKLDivLossFunction
from liger_kernel.ops.tvd import LigerTVDLossFunction

from opcheck import Case, Sample, adopt

IGNORED = -100


def cross_entropy(
    logits: torch.Tensor,
    target: torch.Tensor,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    lse_square_scale: float = 0.0,
    softcap: float | None = None,
) -> torch.Tensor:
    """Return the loss alone; the forward writes the gradient over the logits."""
    return LigerCrossEntropyFunction.apply(
        logits, target, None, IGNORED, lse_square_scale, label_smoothing, reduction, softcap
    )[0]


def cross_entropy_golden(logits, target, reduction="mean", label_smoothing=0.0, lse_square_scale=0.0, softcap=None):
    """Compute `(1 - e) (lse - x[t]) + e (lse - mean(x)) + z lse^2` over the rows that are not ignored."""
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    kept = target != IGNORED
    x = logits[kept]
    maximum = x.amax(-1, keepdim=True).detach()
    lse = maximum.squeeze(-1) + (x - maximum).exp().sum(-1).log()
    losses = (1 - label_smoothing) * (lse - x.gather(1, target[kept][:, None])[:, 0])
    if label_smoothing:
        losses = losses + label_smoothing * (lse - x.mean(1))
    losses = losses + lse_square_scale * lse.square()
    if reduction == "none":
        return torch.zeros_like(kept, dtype=losses.dtype).index_put((kept,), losses)
    return losses.sum() / kept.sum() if reduction == "mean" else losses.sum()


def cross_entropy_reference(logits, target, reduction="mean", label_smoothing=0.0, lse_square_scale=0.0, softcap=None):
    """Do the same in float32 and round to the dtype of the logits, row by row as the unreduced loss is stored."""
    wide = cross_entropy_golden(logits.float(), target, "none", label_smoothing, lse_square_scale, softcap)
    if reduction == "mean":
        wide = wide / (target != IGNORED).sum()
    rows = wide.to(logits.dtype)
    return rows if reduction == "none" else rows.sum()


def cross_entropy_samples(case: Case) -> Sample:
    """Draw logits `[rows, classes]` and a class for each row; every third row, from the second on, is ignored."""
    logits = case.tensor("rows", "classes", name="logits")
    target = case.integers(0, max(case.dims["classes"], 1), "rows", name="target")
    target[1::3] = IGNORED
    return Sample(logits, target)


def fused_linear_cross_entropy(
    x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, label_smoothing: float = 0.0
) -> torch.Tensor:
    """Return the mean cross entropy of `x @ weight^T`."""
    return LigerFusedLinearCrossEntropyFunction.apply(x, weight, target, None, None, IGNORED, 0.0, label_smoothing)[0]


def fused_linear_cross_entropy_golden(x, weight, target, label_smoothing=0.0):
    """Take the product and the loss in FP64."""
    return cross_entropy_golden(x @ weight.T, target, "mean", label_smoothing)


def fused_linear_cross_entropy_reference(x, weight, target, label_smoothing=0.0):
    """Take the product in x's dtype, the loss in float32."""
    return cross_entropy_golden((x @ weight.T).float(), target, "mean", label_smoothing)


def fused_linear_cross_entropy_samples(case: Case) -> Sample:
    """Draw x `[rows, hidden]`, weight `[classes, hidden]` and classes."""
    x, weight = case.tensor("rows", "hidden", name="x"), case.tensor("classes", "hidden", name="weight")
    weight = weight * max(case.dims["hidden"], 1) ** -0.5  # logits of the size that layers are initialized for
    target = case.integers(0, max(case.dims["classes"], 1), "rows", name="target")
    target[1::3] = IGNORED
    return Sample(x, weight, target)


def kl_div(
    log_q: torch.Tensor, p: torch.Tensor, reduction: str = "batchmean", log_target: bool = False, eps: float = 1e-10
) -> torch.Tensor:
    """Compute `p * (log(max(p, eps)) - log_q)`, or `exp(p) * (p - log_q)` where p is in log space."""
    return LigerKLDivLossFunction.apply(log_q, p, reduction, log_target, eps)


def kl_div_golden(log_q, p, reduction="batchmean", log_target=False, eps=1e-10):
    """Do so in the dtype that is given."""
    p = p.detach()
    losses = p.exp() * (p - log_q) if log_target else p * (p.clamp_min(eps).log() - log_q)
    if reduction == "none":
        return losses
    return losses.sum() / {"batchmean": len(p), "mean": p.numel(), "sum": 1}[reduction]


def kl_div_reference(log_q, p, reduction="batchmean", log_target=False, eps=1e-10):
    """Do the same in float32; the loss stays float32."""
    return kl_div_golden(log_q.float(), p.float(), reduction, log_target, eps)


def kl_div_samples(case: Case) -> Sample:
    """Draw log-probabilities and probabilities `[rows, classes]`."""
    log_q = case.tensor("rows", "classes", name="log_q").float().log_softmax(-1)
    p = case.tensor("rows", "classes", name="p")
    return Sample(log_q.to(p.dtype), p.float().softmax(-1).to(p.dtype))


def jsd(log_q: torch.Tensor, log_p: torch.Tensor, beta: float = 0.5) -> torch.Tensor:
    """Compute the generalized Jensen-Shannon divergence of two distributions in log space, the mean over rows."""
    return LigerJSDFunction.apply(log_q, log_p, None, beta)


def jsd_golden(log_q, log_p, beta=0.5):
    """Compute `sum(b p (log p - log m) + (1 - b) q (log q - log m)) / rows` with `m = b p + (1 - b) q`."""
    log_p = log_p.detach()
    if beta == 0.0:
        losses = log_p.exp() * (log_p - log_q)
    elif beta == 1.0:
        losses = log_q.exp() * (log_q - log_p)
    else:
        q, p = log_q.exp(), log_p.exp()
        top = torch.maximum(log_q, log_p).detach()
        log_m = top + (beta * (log_p - top).exp() + (1 - beta) * (log_q - top).exp()).log()
        losses = beta * p * (log_p - log_m) + (1 - beta) * q * (log_q - log_m)
    return losses.sum() / len(log_q)


def jsd_reference(log_q, log_p, beta=0.5):
    """Do the same in float32 and round once."""
    return jsd_golden(log_q.float(), log_p.float(), beta).to(log_q.dtype)


def log_probabilities(case: Case) -> Sample:
    """Draw two distributions in log space `[rows, classes]`."""
    log_q, log_p = (case.tensor("rows", "classes", name=name) for name in ("log_q", "log_p"))
    return Sample(log_q.float().log_softmax(-1).to(log_q.dtype), log_p.float().log_softmax(-1).to(log_p.dtype))


def tvd(p: torch.Tensor, q: torch.Tensor, reduction: str = "batchmean") -> torch.Tensor:
    """Compute `|p - q| / 2`, summed over the classes, the mean over the rows."""
    return LigerTVDLossFunction.apply(p, q, None, reduction)


def tvd_golden(p, q, reduction="batchmean"):
    """Do so in the dtype that is given; q is a constant, as the op takes it."""
    losses = (p - q.detach()).abs() / 2
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum(0).sum()
    return losses.sum() / (len(p) if reduction == "batchmean" else p.numel())


def tvd_reference(p, q, reduction="batchmean"):
    """Do the same in float32; the loss stays float32."""
    return tvd_golden(p.float(), q.float(), reduction)


def tvd_samples(case: Case) -> Sample:
    """Draw two distributions `[rows, classes]`."""
    p, q = (case.tensor("rows", "classes", name=name) for name in ("p", "q"))
    return Sample(p.float().softmax(-1).to(p.dtype), q.float().softmax(-1).to(q.dtype))


adopt(
    cross_entropy,
    name="liger::cross_entropy",
    reference=cross_entropy_reference,
    golden=cross_entropy_golden,
    samples=cross_entropy_samples,
)
adopt(
    fused_linear_cross_entropy,
    name="liger::fused_linear_cross_entropy",
    reference=fused_linear_cross_entropy_reference,
    golden=fused_linear_cross_entropy_golden,
    samples=fused_linear_cross_entropy_samples,
)
adopt(kl_div, name="liger::kl_div", reference=kl_div_reference, golden=kl_div_golden, samples=kl_div_samples)
adopt(jsd, name="liger::jsd", reference=jsd_reference, golden=jsd_golden, samples=log_probabilities)
adopt(tvd, name="liger::tvd", reference=tvd_reference, golden=tvd_golden, samples=tvd_samples)
