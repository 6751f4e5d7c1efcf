"""Run an op on fake tensors, which have everything but values, and keep the form of what it gives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from opcheck.core.case import Case
from opcheck.core.forms import Faked, Form
from opcheck.core.measure import dtype_name
from opcheck.core.spec import OpSpec
from opcheck.run.failure import describe
from opcheck.run.roles import RoleFailed, answer, cotangent, live_outputs, prepared


def form_of(name: str, value: Tensor) -> Form:
    """Return the form of a tensor, real or fake."""
    return Form(
        tensor=name, shape=tuple(value.shape), strides=tuple(value.stride()), dtype=dtype_name(value.dtype),
        device=value.device.type,
    )  # fmt: skip


def forms_of(tensors: Mapping[str, Tensor]) -> tuple[Form, ...]:
    """Return the forms of a run's tensors."""
    return tuple(form_of(name, value) for name, value in tensors.items())


def fake_forms(spec: OpSpec, case: Case, device: torch.device, no_grad: Collection[str] = ()) -> Faked:
    """Run forward and backward on fakes of the case's inputs and upstream gradients.

    Args:
        no_grad: Inputs for which the contract promises no gradient; where that is all, there is no backward.

    Raises:
        RoleFailed: The fake of the op, or of its backward, raised.
    """
    call = prepared(spec, case, "target", device)
    with FakeTensorMode() as mode:
        call = call.map(lambda name, value: mode.from_tensor(value))
        outputs, _ = answer(spec, "target", call)
        found = dict(outputs)
        leaves = [
            (name, value)
            for name, value in call.tensors()
            if value.requires_grad and name.partition("[")[0] not in no_grad
        ]
        live = live_outputs(outputs, case)
        if leaves and live:
            upstream = [mode.from_tensor(_upstream(case, name, value)) for name, value in live.items()]
            try:
                gradients: tuple[Tensor | None, ...] = torch.autograd.grad(
                    list(live.values()), [value for _, value in leaves], upstream, allow_unused=True
                )
            except Exception as error:
                raise RoleFailed(describe(error, "target", "backward")) from error
            pairs = zip(leaves, gradients, strict=True)
            found |= {f"grad {name}": value for (name, _), value in pairs if value is not None}
        return Faked(forms=forms_of(found))


def symbolic_forms(spec: OpSpec, case: Case, device: torch.device) -> Faked:
    """Run the forward on fakes whose sizes are symbols, and say which of them the fake turned into numbers.

    Raises:
        RoleFailed: The fake of the op raised.
    """
    call = prepared(spec, case, "target", device)
    shapes = ShapeEnv()
    symbols: dict[str, Any] = {}
    with FakeTensorMode(shape_env=shapes) as mode:

        def fake(name: str, value: Tensor) -> Tensor:
            context: Any = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * value.dim())
            made = mode.from_tensor(value, symbolic_context=context)
            names = call.axes.get(name) or tuple(f"size {at} of {name}" for at in range(made.dim()))
            sizes: tuple[Any, ...] = tuple(made.shape)
            if len(names) == len(sizes):
                named = zip(names, sizes, strict=True)
                symbols.update((dim, size) for dim, size in named if isinstance(size, torch.SymInt))
            return made

        answer(spec, "target", call.map(fake))
    fixed = []
    numbers = _numbers((*call.args, *call.kwargs.values()))
    for dim, size in symbols.items():
        settled = shapes.replace(size.node.expr)
        # An op that gets a size as a number, too (layer_norm's normalized_shape), may well compare the two.
        if settled.is_number and int(settled) not in numbers:
            fixed.append(f"{dim} = {settled}")
    return Faked(fixed=tuple(fixed), sizes=len(symbols))


def _numbers(values: Iterable[Any]) -> set[int]:
    """Return the integers among arguments, and in lists among them."""
    found: set[int] = set()
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool):
            found.add(value)
        elif isinstance(value, list | tuple):
            found |= _numbers(value)
    return found


def _upstream(case: Case, name: str, output: Tensor) -> Tensor:
    with torch._subclasses.fake_tensor.unset_fake_temporarily():
        return cotangent(case, "target", name, torch.empty(output.shape, dtype=output.dtype, device=output.device))
