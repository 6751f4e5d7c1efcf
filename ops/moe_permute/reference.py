"""Tokens in the order of their experts in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(
    tokens: torch.Tensor, expert_ids: torch.Tensor, experts: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sort the copies by a stable sort of torch, so that gradients add up in float32; copies are exact."""
    flat = expert_ids.flatten()
    order = torch.argsort(flat, stable=True)
    rows = torch.empty_like(order).scatter(0, order, torch.arange(len(order), device=order.device))
    copies = tokens.float()[order // expert_ids.shape[1]].to(tokens.dtype)
    ends = torch.bincount(flat, minlength=experts).cumsum(0)
    return copies, rows.reshape(expert_ids.shape), torch.nn.functional.pad(ends, (1, 0))


def golden(
    tokens: torch.Tensor, expert_ids: torch.Tensor, experts: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Collect the tokens of one expert after the other."""
    flat = expert_ids.flatten()
    numbers = [torch.nonzero(flat == expert)[:, 0] for expert in range(experts)]
    order = torch.cat(numbers)
    rows = torch.empty_like(flat)
    rows[order] = torch.arange(len(order), device=flat.device)
    lengths = torch.tensor([0, *map(len, numbers)], device=flat.device)
    return tokens[order // expert_ids.shape[1]], rows.reshape(expert_ids.shape), lengths.cumsum(0)


def samples(case: Case) -> Sample:
    """Draw tokens `[tokens, hidden]` and for each `topk` ids of experts; one may come twice."""
    tokens, experts = case.tensor("tokens", "hidden", name="tokens"), case.dims["experts"]
    return Sample(tokens, case.integers(0, max(experts, 1), "tokens", "topk", name="expert_ids"), experts)
