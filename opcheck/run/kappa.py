"""The condition number of one element: from the author's terms, else by autograd through golden."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from opcheck.core.case import Case
from opcheck.core.conditioning import Kappa
from opcheck.core.floats import ulp, upcast_exact
from opcheck.core.formats import format_of
from opcheck.core.layouts import GRADIENT
from opcheck.core.measured import Index
from opcheck.core.spec import OpSpec
from opcheck.run.inputs import Call, seeded
from opcheck.run.roles import Run, answer, cotangent, live_outputs, prepared, setting

PERTURBATIONS = 32  # random changes of the inputs; their RMS then has a standard error of 13 %
ADDED_UP = 1e-6  # of sum |t|: how near to golden the author's terms must add up


def element_of(reference: Tensor, golden: Tensor) -> Index:
    """Return the index of the judged element where the reference is furthest from golden."""
    f, g = upcast_exact(reference.detach()), golden.detach()
    error = (f - g).abs().nan_to_num(nan=-1.0, posinf=-1.0)
    return tuple(int(part) for part in torch.unravel_index(error.argmax(), error.shape)) if error.dim() else ()


def terms_of(spec: OpSpec, case: Case, device: torch.device) -> dict[str, Tensor]:
    """Return the author's terms `[*S, T]` in FP64 of each output that has any, by the output's name."""
    if spec.terms is None or spec.mutated:
        return {}
    call = prepared(spec, case, "golden", device).map(lambda name, value: value.detach())
    with setting("golden", spec.dispatched):
        given = spec.terms(*call.args, **call.kwargs)
    if isinstance(given, Tensor):
        return {"out": given, "out 0": given}
    return {f"out {at}": item for at, item in enumerate(given) if isinstance(item, Tensor)}


def kappa_of(
    spec: OpSpec, case: Case, device: torch.device, tensor: str, reference: Tensor, golden: Run, terms: Tensor | None
) -> Kappa:
    """Return the condition number of the element of `tensor` where the reference is furthest from golden.

    Without terms it is `sum_i |x_i df/dx_i| / |f|` over the floating-point inputs and the upstream gradients, by
    autograd through golden in FP64; for a gradient by double backward.

    Source:
        Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 1.6 and 4.2.
    """
    truth = golden.tensors[tensor].detach()
    index = element_of(reference, truth)
    f, g = float(upcast_exact(reference.detach())[index]), float(truth[index])
    known = Kappa(
        of="inputs" if terms is None else "terms", index=index, unit=format_of(reference.dtype).unit,
        quotient=abs(f - g) / abs(g) if g else math.inf,
    )  # fmt: skip
    return _of_inputs(known, spec, case, device, tensor) if terms is None else _of_terms(known, terms, truth)


def _of_terms(known: Kappa, terms: Tensor, golden: Tensor) -> Kappa:
    if terms.shape[:-1] != golden.shape:
        wanted = ", ".join(map(str, [*golden.shape, "T"]))
        return replace(known, problem=f"terms gives shape {list(terms.shape)}; it should be [{wanted}]")
    g = float(golden[known.index])
    each = terms[known.index].double()
    whole, magnitude = math.fsum(each.tolist()), math.fsum(each.abs().tolist())
    if abs(whole - g) > ADDED_UP * magnitude:
        return replace(known, problem=f"the terms add up to {whole:.6g} where golden is {g:.6g}")
    return replace(known, value=magnitude / abs(whole) if whole else math.inf)


def _of_inputs(known: Kappa, spec: OpSpec, case: Case, device: torch.device, tensor: str) -> Kappa:
    if spec.mutated:
        return replace(known, problem="the op writes into its arguments; register terms")
    call = prepared(spec, case, "golden", device).map(_leaf)
    inputs = [(name, value) for name, value in call.tensors() if value.requires_grad]
    element, cotangents = _element(spec, case, call, tensor, known.index)
    if element is None or not element.requires_grad:
        return replace(known, problem="golden's graph ends there; register terms")
    leaves = [value for _, value in inputs] + list(cotangents.values())
    found: Sequence[Tensor | None] = torch.autograd.grad(element, leaves, allow_unused=True)
    pairs = [(leaf.detach(), slope) for leaf, slope in zip(leaves, found, strict=True) if slope is not None]
    f = abs(float(element.detach()))
    total = math.fsum(float((x * slope).abs().sum()) for x, slope in pairs)
    steps = {name: _half_ulp(case.dtype_of(name.partition("[")[0]), value) for name, value in inputs}
    predicted = math.sqrt(
        math.fsum(
            float((steps[name] * slope).square().sum()) / 3
            for (name, _), slope in zip(inputs, found, strict=False)
            if slope is not None
        )
    )
    changed = _changed(spec, case, device, tensor, known.index, steps)
    return replace(
        known, value=total / f if f else math.inf,
        perturbed=1.0 if changed == predicted else changed / predicted if predicted else math.inf,
    )  # fmt: skip


def _changed(
    spec: OpSpec, case: Case, device: torch.device, tensor: str, index: Index, steps: Mapping[str, Tensor]
) -> float:
    """Return the RMS change of an element of golden under changes of the inputs, uniform within half an ulp."""
    generator = seeded(f"{case.id}|perturbed", device if device.type != "cpu" else None)

    def moved(name: str, value: Tensor) -> Tensor:
        if name not in steps:
            return _leaf(name, value)
        noise = torch.rand(value.shape, generator=generator, dtype=torch.float64, device=value.device)
        return _leaf(name, value.detach() + (2 * noise - 1) * steps[name])

    base = prepared(spec, case, "golden", device)
    still, _ = _element(spec, case, base.map(_leaf), tensor, index)
    if still is None:
        return math.nan
    squares = []
    for _ in range(PERTURBATIONS):
        value, _ = _element(spec, case, base.map(moved), tensor, index)
        squares.append(math.nan if value is None else float(value.detach() - still.detach()) ** 2)
    return math.sqrt(math.fsum(squares) / len(squares))


def _element(
    spec: OpSpec, case: Case, call: Call, tensor: str, index: Index
) -> tuple[Tensor | None, dict[str, Tensor]]:
    """Return one element of golden as a scalar with its graph, and the upstream gradients that it depends on."""
    with setting("golden", spec.dispatched):
        outputs, _ = answer(spec, "golden", call)
        if not tensor.startswith("grad "):
            return outputs[tensor][index], {}
        live = live_outputs(outputs, case)
        cotangents = {
            f"{GRADIENT}{name}": cotangent(case, "golden", name, value.detach()).detach().requires_grad_()
            for name, value in live.items()
        }
        leaf = dict(call.tensors())[tensor.removeprefix("grad ")]
        found: Sequence[Tensor | None] = torch.autograd.grad(
            list(live.values()), [leaf], list(cotangents.values()), create_graph=True, allow_unused=True
        )
        return (None if found[0] is None else found[0][index]), cotangents


def _leaf(name: str, value: Tensor) -> Tensor:
    return value.detach().clone().requires_grad_() if value.dtype.is_floating_point else value


def _half_ulp(dtype: str, value: Tensor) -> Tensor:
    """Return half an ulp of each value `[*S]` in the element type that it was drawn in."""
    return ulp(value.detach(), format_of(dtype)) / 2
