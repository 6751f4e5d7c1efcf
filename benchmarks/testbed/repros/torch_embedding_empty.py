"""torch 2.11.0: on a GPU the backward of embedding in float16 reads outside of memory where a row is empty."""

import torch
from _setup import DEVICE, report

if DEVICE != "cuda":
    report(False, "only a GPU does")
weight = torch.randn(3, 0, device=DEVICE, dtype=torch.float16, requires_grad=True)
indices = torch.randint(0, 3, (129,), device=DEVICE)
out = torch.nn.functional.embedding(indices, weight)
torch.cuda.synchronize()
try:
    torch.autograd.grad(out, weight, torch.empty_like(out))
    torch.cuda.synchronize()
    seen = ""
except RuntimeError as error:
    seen = str(error).splitlines()[0]
report("illegal memory access" in seen, seen or "the backward ran")
