"""liger-kernel 0.8.5: relu_squared and sparsemax give numbers where their input is NaN; torch keeps the NaN."""

import torch
from _setup import DEVICE, report
from liger_kernel.ops.relu_squared import LigerReLUSquaredFunction
from liger_kernel.ops.sparsemax import LigerSparsemaxFunction

x = torch.tensor([[1.0, float("nan"), 2.0, 0.5]], device=DEVICE)
relu, sparse = LigerReLUSquaredFunction.apply(x), LigerSparsemaxFunction.apply(x, -1)
report(not (relu[0, 1].isnan() and sparse.isnan().any()), f"relu_squared {relu.tolist()}, sparsemax {sparse.tolist()}")
