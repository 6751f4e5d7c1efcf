"""Gated linear recurrence in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Step through time in float32 and round once to b's dtype."""
    return golden(a.float(), b.float()).to(b.dtype)


def golden(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Compute `h[t] = a[t] * h[t - 1] + b[t]`, one step after the other."""
    states = [torch.zeros_like(b[:, :1].sum(1))]
    for gate, value in zip(a.unbind(1), b.unbind(1), strict=True):
        states.append(gate * states[-1] + value)
    return torch.stack(states[1:], 1) if b.shape[1] else a * b


def samples(case: Case) -> Sample:
    """Draw a and b `[batch, time, channels]`.

    The gates are sigmoids of what is drawn, so that they lie from 0 to 1 and no product of them explodes. b is drawn
    first: the families that change one tensor only are meant for it.
    """
    b = case.tensor("batch", "time", "channels", name="b")
    a = case.tensor("batch", "time", "channels", name="a")
    return Sample(torch.sigmoid(a.float()).to(a.dtype), b)
