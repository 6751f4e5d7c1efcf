"""Learn from one small run what no contract says of an op: which tensors it takes and gives."""

from __future__ import annotations

import torch

from opcheck.backends.virtual import refused
from opcheck.core.case import Case
from opcheck.core.facts import Facts, Input, Output
from opcheck.core.policy import Contract
from opcheck.core.shapes import odd
from opcheck.core.spec import OpSpec
from opcheck.run.inputs import draw
from opcheck.run.roles import run_role


def facts_of(spec: OpSpec, contract: Contract, device: torch.device) -> Facts:
    """Draw the representative case of the first element type, run the reference on it, and say what was seen.

    Raises:
        RoleFailed, SampleError, BadCase: The case cannot be drawn, or the reference raises.
    """
    case = Case(op=spec.name, dtype=contract.dtypes[0], dims=odd(contract), backend=device.type)
    call = draw(spec, case, device)
    inputs = {}
    for name, value in call.tensors():
        kind, dims = call.drawn.get(name, ("other", ()))
        inputs[name] = Input(kind=kind, rank=value.dim(), dims=dims, floating=value.dtype.is_floating_point)
    run = run_role(spec, case, "reference", device)
    outputs = {
        name: Output(rank=value.dim(), differentiable=value.dtype.is_floating_point and name not in run.detached)
        for name, value in {**run.outputs, **run.mutated}.items()
    }
    no_far = refused() if device.type == "cpu" else "on a GPU they would take real memory"
    return Facts(inputs=inputs, outputs=outputs, no_far=no_far)
