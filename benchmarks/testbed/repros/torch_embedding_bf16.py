"""torch 2.13.0: on the CPU the gradient of embedding adds up in bfloat16."""

import torch
from _setup import report

weight = torch.zeros(1, 1, dtype=torch.bfloat16, requires_grad=True)
out = torch.nn.functional.embedding(torch.zeros(1000, dtype=torch.int64), weight)
out.backward(torch.ones_like(out))
report(weight.grad.item() != 1000, f"1,000 upstream gradients of 1 add up to {weight.grad.item():.0f}")
