"""moe-ops 0.1.0: fused_topk_softmax routes a token whose logits hold a NaN as if they did not."""

import torch
from _setup import DEVICE, report
from moe_ops import fused_topk_softmax

logits = torch.tensor([[0.0, float("nan"), 1.0, 2.0]], device=DEVICE)
weights, experts = fused_topk_softmax(logits, 2)
right = logits.topk(2)
report(
    not weights.isnan().any(),
    f"weights {weights.tolist()} of {experts.tolist()}; torch.topk gives {right.values.tolist()}",
)
