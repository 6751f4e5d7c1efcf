"""moe-ops 0.1.0: grouped_gemm and fused_topk_softmax take it for granted that their tensors are contiguous."""

import torch
from _setup import DEVICE, report
from moe_ops import fused_topk_softmax
from moe_ops.grouped_gemm_ops import grouped_gemm

a = torch.randn(16, 32, device=DEVICE, dtype=torch.float16)
b = torch.randn(2, 16, 32, device=DEVICE, dtype=torch.float16)
offsets = torch.tensor([0, 16, 32], device=DEVICE, dtype=torch.int32)
strided = torch.randn(32, 32, device=DEVICE, dtype=torch.float16).T
gemm = (grouped_gemm(strided, b, offsets) - grouped_gemm(strided.contiguous(), b, offsets)).abs().max().item()
logits = torch.randn(8, 32, device=DEVICE).T
topk = (fused_topk_softmax(logits, 2)[0] - fused_topk_softmax(logits.contiguous(), 2)[0]).abs().max().item()
report(
    max(gemm, topk) > 1e-2, f"a transposed a changes grouped_gemm by {gemm:.2g}, transposed logits topk by {topk:.2g}"
)
