"""liger-kernel 0.8.5: the gradient of embedding is added up in float16, by atomics."""

import torch
from _setup import DEVICE, report
from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction

weight = torch.zeros(1, 16, dtype=torch.float16, device=DEVICE, requires_grad=True)
indices = torch.zeros(4096, dtype=torch.int64, device=DEVICE)
out = LigerEmbeddingFunction.apply(weight, indices)
out.backward(torch.ones_like(out))
report(weight.grad[0, 0].item() != 4096, f"4,096 upstream gradients of 1 add up to {weight.grad[0, 0].item():.0f}")
