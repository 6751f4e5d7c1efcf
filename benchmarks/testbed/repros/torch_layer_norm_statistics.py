"""torch 2.13.0: on the CPU layer_norm keeps mean and rstd in float16 or bfloat16 for backward."""

import torch
from _setup import report

x = (torch.randn(8, 256) + 4).half()
weight, bias = torch.randn(256).half(), torch.zeros(256).half()
kept = torch.native_layer_norm(x, [256], weight, bias, 1e-5)[1:]
upstream = torch.ones(8, 256).half()
gradients = []
for change in (lambda t: t, torch.Tensor.float, torch.Tensor.double):
    leaf = x.clone().requires_grad_()
    y = torch.nn.functional.layer_norm(change(leaf), [256], change(weight), change(bias), 1e-5)
    y.backward(change(upstream))
    gradients.append(leaf.grad.double())
half, single, right = gradients
error, beside = ((each - right).abs().max().item() for each in (half, single))
report(error > 2 * beside, f"kept in {kept[0].dtype}: error of the gradient {error:.1e}, through float32 {beside:.1e}")
