"""fla-core 0.6.0: logsigmoid is log(1 + exp(-x)) and not log1p: from x = 17 on it is 0, and its digits go before."""

import torch
from _setup import DEVICE, report
from fla.modules.activations import logsigmoid

x = torch.tensor([[4.0, 10.0, 17.0, 20.0]], device=DEVICE)
y, right = logsigmoid(x).double(), torch.nn.functional.logsigmoid(x.double())
relative = ((y - right) / right).abs()
report(
    relative.max().item() > 1e-5,
    f"relative errors {[f'{value:.1e}' for value in relative[0].tolist()]} at {x[0].tolist()}",
)
