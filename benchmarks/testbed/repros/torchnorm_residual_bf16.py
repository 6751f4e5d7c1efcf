"""torchnorm 0.1.2: fused_add_rms_norm rounds x + residual to bfloat16 whatever its dtype is."""

import torch
from _setup import DEVICE, report
from torchnorm._triton import fused_add_rms_norm

x, residual = torch.full((1, 8), 1.0, device=DEVICE), torch.full((1, 8), 2**-10, device=DEVICE)
_, added = fused_add_rms_norm(x, residual, torch.ones(8, device=DEVICE), 1e-6)
report(added[0, 0].item() != 1 + 2**-10, f"1 + 2^-10 in {added.dtype} is {added[0, 0].item():.7f}")
