"""liger-kernel 0.8.5: tvd takes |p - q| / 2 and its row sums in the dtype of p before it goes on in float32."""

import torch
from _setup import DEVICE, report
from liger_kernel.ops.tvd import LigerTVDLossFunction

p, q = (torch.randn(4, 1000, device=DEVICE).softmax(-1).to(torch.float16) for _ in range(2))
loss = LigerTVDLossFunction.apply(p, q).item()
right = ((p.double() - q.double()).abs().sum() / 2 / 4).item()
upcast = ((p.float() - q.float()).abs().sum() / 2 / 4).item()
report(abs(loss - right) > 100 * abs(upcast - right) + 1e-6, f"loss {loss:.7f}, right is {right:.7f}")
