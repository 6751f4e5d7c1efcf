"""cut-cross-entropy 25.1.1: the backward of a classifier that is a slice of a wider tensor fails on an assertion."""

import torch
from _setup import DEVICE, report
from cut_cross_entropy import linear_cross_entropy

e = torch.randn(16, 64, device=DEVICE, dtype=torch.float16, requires_grad=True)
c = torch.randn(32, 128, device=DEVICE, dtype=torch.float16, requires_grad=True)
loss = linear_cross_entropy(e, c[:, :64], torch.arange(16, device=DEVICE), filter_eps=None)  # forward takes it
try:
    loss.backward()
except AssertionError:
    report(True, "AssertionError: dc.stride() == c.stride(); zeros_like gives a slice contiguous strides")
report(False, "backward runs")
