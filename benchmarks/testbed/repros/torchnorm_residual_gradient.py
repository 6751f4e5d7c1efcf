"""torchnorm 0.1.2: fused_add_rms_norm drops the gradient of the residual stream that it returns."""

import torch
from _setup import DEVICE, report
from torchnorm._triton import fused_add_rms_norm

x = torch.randn(2, 8, device=DEVICE, requires_grad=True)
residual = torch.randn(2, 8, device=DEVICE, requires_grad=True)
_, added = fused_add_rms_norm(x, residual, torch.ones(8, device=DEVICE), 1e-6)
added.sum().backward()  # what it returns second is x + residual: its gradient is 1
# backward takes it as `dr_pass` and does not use it: a skip connection trains on half of its gradient.
report(not torch.allclose(x.grad, torch.ones_like(x)), f"gradient of x {x.grad[0].tolist()}, right is 1")
