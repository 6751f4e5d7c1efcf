"""Elementwise ops in wide types: what the rounding of each element's own inputs explains."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from opcheck.core.case import Case
from opcheck.core.floats import ulp, upcast_exact
from opcheck.core.formats import Format, format_of
from opcheck.core.measured import Element
from opcheck.core.outcome import ElementErrorsOf
from opcheck.core.spec import OpSpec
from opcheck.run.inputs import Call, draw
from opcheck.run.oracle import exact_settings
from opcheck.run.roles import upstream

NEIGHBOURS = 256  # elements nearest in |golden| among which the reference's largest error is taken
ON_REFERENCE = 32.0  # times that error; a fast exp on an H200 has 4 to 56 ulp where torch has 2
NARROW_NOISE = 2.0**-22  # of the scale: four roundings of the FP32 inside; nothing narrow is nearer to 0 than that

Conditioned = dict[str, tuple[Tensor, Tensor]]


def input_conditions(spec: OpSpec, case: Case, device: torch.device) -> Conditioned:
    """Return golden `[*S]` and `sum_i |x_i df/dx_i|` `[*S]` of each output, and of each gradient of an output's shape.

    The sum runs over the floating-point inputs and, for gradients, the upstream gradient, by autograd through golden
    in FP64. Inputs are expanded to the output's shape first, so that each element has inputs of its own; where golden
    then gives another shape it is not elementwise, and the answer is empty.

    Source:
        Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 1.6, for the condition number.
    """
    call = draw(spec, case, device)
    with exact_settings(double=True):
        call = call.map(lambda name, value: value.double() if value.dtype.is_floating_point else value)
        first = call.map(lambda name, value: value.clone())  # an in-place op would leave its answer in `call`
        outputs = _outputs(spec, first, spec.golden(*first.args, **first.kwargs))
        shape = next(iter(outputs.values())).shape
        own = {name for name, value in call.tensors() if value.dtype.is_floating_point and value.shape == shape}
        try:
            wide = call.map(lambda name, value: _own(value, shape))
        except RuntimeError:
            return {}
        leaves = {name: value for name, value in wide.tensors() if value.requires_grad}
        # A leaf that requires grad may not be written into, a copy of it may: golden of an in-place op does so.
        passed = wide.map(lambda name, value: value.clone())
        values = list(_outputs(spec, passed, spec.golden(*passed.args, **passed.kwargs)).values())
        if any(value.shape != shape or not value.requires_grad for value in values):
            return {}
        found: Conditioned = {}
        for name, value in zip(outputs, values, strict=True):
            found[name] = (value.detach(), _condition(value, list(leaves.values())))
        if spec.mutated:
            return found
        cotangents = [
            upstream(case, name, value.detach()).requires_grad_() for name, value in zip(outputs, values, strict=True)
        ]
        products = [(value * dy).sum() for value, dy in zip(values, cotangents, strict=True)]
        total = torch.stack(products).sum()
        for name in own:
            (gradient,) = torch.autograd.grad(total, [leaves[name]], create_graph=True, allow_unused=True)
            if gradient is not None:
                found[f"grad {name}"] = (gradient.detach(), _condition(gradient, [*leaves.values(), *cotangents]))
    return found


def element_errors(
    name: str, target: Tensor, reference: Tensor, golden: Tensor, condition: Tensor, max_ulp: float
) -> ElementErrorsOf:
    """Count the elements of `target` `[*S]` that neither their inputs' rounding nor the reference's error explains."""
    fmt = format_of(target.dtype)
    shape = tuple(target.shape)
    t, f, g = (upcast_exact(item.detach()).reshape(-1) for item in (target, reference, golden))
    judged = t.isfinite() & f.isfinite() & g.isfinite()
    error_t, error_f = (torch.where(judged, (item - g).abs(), torch.zeros_like(g)) for item in (t, f))
    first, second = allowance(g, error_f, condition.reshape(-1), fmt, max_ulp)
    allowed = torch.maximum(first, second)
    ratio = error_t / allowed
    at = int(ratio.argmax())
    index = tuple(int(part) for part in torch.unravel_index(torch.tensor(at), shape)) if shape else ()
    return ElementErrorsOf(
        tensor=name,
        wrong=int((error_t > allowed).sum()),
        on_reference=int(((error_t > first) & (error_t <= second)).sum()),
        excess=float(ratio[at]),
        worst=Element(index=index, golden=float(g[at]), reference=float(f[at]), target=float(t[at])),
    )


def allowance(g: Tensor, error: Tensor, condition: Tensor, fmt: Format, max_ulp: float) -> tuple[Tensor, Tensor]:
    """Return the two errors that elements `[n]` are allowed, either of which is enough.

    Wide types: the first is `max_ulp * (ulp(g) + ulp(1) * condition)`, the second `32 E + ulp(g)` with E the largest
    `error` of the reference among the elements nearest in magnitude. Narrow types, computed in FP32, have one:
    `max_ulp * ulp(g) + 2^-22 max|g|`, for what is left of `1 + erf(x)` at x = -5 is FP32 noise.
    """
    finite = torch.where(g.isfinite(), g, torch.zeros_like(g))
    step = ulp(finite, fmt)
    if fmt.wide:
        first = max_ulp * (step + 2 * fmt.unit * condition.nan_to_num(nan=0.0))
        return first, ON_REFERENCE * _nearby(error, g) + step
    first = max_ulp * step + NARROW_NOISE * finite.abs().max()
    return first, first


def _outputs(spec: OpSpec, call: Call, answer: Any) -> dict[str, Tensor]:
    """Return what a call gave, by its name in reports: its outputs, and the arguments that it wrote into."""
    returned = [] if answer is None else [answer] if isinstance(answer, Tensor) else list(answer)
    names = ["out"] if isinstance(answer, Tensor) else [f"out {at}" for at in range(len(returned))]
    mutated = {name: value for name, value in call.tensors() if name.partition("[")[0] in spec.mutated}
    return {**dict(zip(names, returned, strict=True)), **mutated}


def _own(value: Tensor, shape: torch.Size) -> Tensor:
    if not value.dtype.is_floating_point:
        return value
    return value.detach().expand(shape).clone().requires_grad_()


def _condition(value: Tensor, inputs: list[Tensor]) -> Tensor:
    """Return `sum_i |x_i dv/dx_i|` `[*S]` of an elementwise `value` `[*S]`."""
    total = torch.zeros_like(value)
    if not value.requires_grad:
        return total
    found = torch.autograd.grad(value.sum(), inputs, retain_graph=True, allow_unused=True)
    for x, slope in zip(inputs, found, strict=True):
        if slope is not None:
            total = total + (x * slope).abs()
    return total.detach()


def _nearby(error: Tensor, g: Tensor) -> Tensor:
    """Return for each element the largest error among the `NEIGHBOURS` elements nearest in `|g|`."""
    order = g.abs().nan_to_num(nan=torch.inf).argsort()
    sorted_errors = error[order][None, None]
    half = NEIGHBOURS // 2
    window = torch.nn.functional.max_pool1d(sorted_errors, 2 * half + 1, stride=1, padding=half)[0, 0]
    out = torch.empty_like(error)
    out[order] = window
    return out
