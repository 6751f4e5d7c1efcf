"""One run of one role: draw, call, differentiate with the shared upstream gradient."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from opcheck.core.case import Case
from opcheck.core.families import family
from opcheck.core.floats import finite
from opcheck.core.layouts import GRADIENT
from opcheck.core.outcome import Raised, Role
from opcheck.core.spec import OpSpec
from opcheck.run.failure import describe
from opcheck.run.inputs import Call, draw, standard_normal
from opcheck.run.intact import Keeps
from opcheck.run.layouts import laid_out, revalued, revalued_gradient
from opcheck.run.oracle import Own, exact_settings
from opcheck.run.oracle import Watch as OracleWatch
from opcheck.run.values import fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one role gave on one case.

    Attributes:
        outputs: Outputs by name, in order: `"out"`, or `"out 0"`, `"out 1"`.
        odd: What came back in place of tensors, as sentences.
        mutated: Arguments that the op writes into, as they are afterwards, by name.
        gradients: Gradient of each input that requires one, None where autograd gave none, by `"grad <input>"`.
        detached: Differentiable outputs without a gradient function.
        backward: How the backward failed, where it did.
        axes: Dimension names of the drawn tensors.
        finite: Whether all floating-point inputs are finite.
        inputs: The tensors that the role was called with.
    """

    outputs: Mapping[str, Tensor]
    odd: tuple[str, ...] = ()
    mutated: Mapping[str, Tensor] = field(default_factory=dict)
    gradients: Mapping[str, Tensor | None] = field(default_factory=dict)
    detached: tuple[str, ...] = ()
    backward: Raised | None = None
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    finite: bool = True
    inputs: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor that is judged, by its name in reports."""
        present = {name: value for name, value in self.gradients.items() if value is not None}
        return {**self.outputs, **self.mutated, **present}


class Surrounds(Protocol):
    """What gives a run its memory: the tensors that the op gets, and whatever it allocates."""

    def given(self, name: str, tensor: Tensor) -> Tensor:
        """Return what the op gets in place of a tensor `[*S]` of the case: its values and layout, other memory."""

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """Be around the op's own code, forward or backward."""


class RoleFailed(Exception):
    """A role raised: carries the outcome."""

    def __init__(self, raised: Raised) -> None:
        super().__init__(str(raised))
        self.raised = raised


def run_role(
    spec: OpSpec,
    case: Case,
    role: Role,
    device: torch.device,
    *,
    precision: torch.dtype | None = None,
    permute: Mapping[str, Tensor] | None = None,
    permute_outputs: Mapping[str, tuple[tuple[int, Tensor], ...]] | None = None,
    watch: Keeps | None = None,
    memory: Surrounds | None = None,
) -> Run:
    """Run golden, reference or target once on inputs rebuilt from the case.

    Args:
        precision: Element type to which floating-point inputs are widened; float64 for golden unless given.
        permute: Permutation of each dimension name, applied alike to all inputs that have it.
        permute_outputs: For each output, the axes along which its upstream gradient is permuted, and how.
        watch: Remembers inputs before the forward, outputs and upstream gradients before the backward.
        memory: Gives the inputs and upstream gradients other memory, and is around the op's code.

    Raises:
        RoleFailed: The role raised in its forward, or in its backward where it is golden or reference, or where the
            target's left the device unusable.
        SampleError, BadCase: The case does not fit the op.
    """
    call = prepared(spec, case, role, device, precision=precision, permute=permute)
    floats = [value.detach() for _, value in call.tensors() if value.dtype.is_floating_point]
    all_finite = all(bool(finite(value).all()) for value in floats)
    differentiate = not spec.mutated
    if memory is not None:
        call = call.map(memory.given)
    if watch is not None:
        for name, value in call.tensors():
            watch.keep(name, value, writable=name.partition("[")[0] in spec.mutated)
    with setting(role, spec.dispatched):
        with memory.inside() if memory is not None else contextlib.nullcontext():
            outputs, odd = answer(spec, role, call)
        try:
            settle(device)
        except RuntimeError as error:
            raise RoleFailed(describe(error, role, "forward")) from error
        mutated = {name: value for name, value in call.tensors() if name.partition("[")[0] in spec.mutated}
        inputs = {name: value.detach() for name, value in call.tensors()}
        run = Run(outputs=outputs, odd=odd, mutated=mutated, axes=call.axes, finite=all_finite, inputs=inputs)
        return _with_gradients(run, call, case, role, permute_outputs or {}, watch, memory) if differentiate else run


def answer(spec: OpSpec, role: Role, call: Call) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Call a role, to be done under its `setting`, and return its outputs by name and what came in their place.

    Raises:
        RoleFailed: The role raised.
    """
    try:
        with torch.no_grad() if spec.mutated else contextlib.nullcontext():
            given = _function(spec, role)(*call.args, **call.kwargs)
    except (Exception, SystemExit) as error:
        raise RoleFailed(describe(error, role, "forward")) from error
    return outputs_by_name(given, expected=not spec.mutated)


def prepared(
    spec: OpSpec,
    case: Case,
    role: Role,
    device: torch.device,
    *,
    precision: torch.dtype | None = None,
    permute: Mapping[str, Tensor] | None = None,
) -> Call:
    """Return the arguments with which a role is called: values, element types, layouts, and what requires a gradient.

    Raises:
        RoleFailed: `samples` raised.
        SampleError, BadCase: The case does not fit the op.
    """
    call = _draw(spec, case, device)
    layouts = case.layouts
    call = call.map(lambda name, value: revalued(layouts[name], value) if name in layouts else value)
    if permute:
        call = call.map(lambda name, value: _permuted(value, call.axes.get(name, ()), permute))
    if role == "golden":
        precision = precision or torch.float64
    if precision is not None:
        call = call.map(lambda name, value: value.to(precision) if value.dtype.is_floating_point else value)
    if role == "target":
        call = call.map(lambda name, value: laid_out(layouts[name], value) if name in layouts else value)
    if spec.mutated:
        return call
    return call.map(lambda name, value: _leaf(name, value, case.wanted, spec.no_grad))


def upstream(case: Case, name: str, output: Tensor) -> Tensor:
    """Draw the upstream gradient of an output, `[*S]`, the same values for golden, reference and target.

    It is drawn in the narrowest of the case's element types of 16 bits or more, so that no role rounds it.
    """
    normal = standard_normal(tuple(output.shape), f"{case.seed}|{case.op}|upstream {name}", output.device)
    values = family(case.values)
    if values is not None and values.upstream:
        normal = fill(values.name, normal, "float32")
    narrow = min((getattr(torch, dtype) for dtype in case.dtypes), key=lambda dtype: max(dtype.itemsize, 2))
    drawn = (normal if narrow.itemsize < 2 else normal.to(narrow)).to(output.dtype).to(output.device)
    layout = case.layouts.get(f"{GRADIENT}{name}")
    return revalued_gradient(layout, drawn) if layout else drawn


def _draw(spec: OpSpec, case: Case, device: torch.device) -> Call:
    from opcheck.errors import OpcheckError

    try:
        return draw(spec, case, device)
    except OpcheckError:
        raise
    except (Exception, SystemExit) as error:
        raise RoleFailed(describe(error, "samples", "forward")) from error


def _function(spec: OpSpec, role: Role) -> Callable[..., Any]:
    return {"golden": spec.golden, "reference": spec.reference, "target": spec.target}[role]


@contextlib.contextmanager
def setting(role: Role, name: str) -> Iterator[None]:
    """Golden and reference run under exact settings; the target keeps the user's."""
    if role == "target":
        yield
        return
    with exact_settings(double=role == "golden"), OracleWatch(name) if role == "golden" else Own(role, name):
        yield


def settle(device: torch.device) -> None:
    """Wait for what was launched: a kernel's fault is raised later, and belongs to the role that launched it.

    Raises:
        RuntimeError: A kernel ended in an error, after which nothing runs on the device in this process.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def unusable(device: torch.device) -> bool:
    """Say whether a kernel has left the device unusable to this process: CUDA then refuses everything after it."""
    try:
        settle(device)
    except RuntimeError:
        return True
    return False


def _leaf(name: str, value: Tensor, wanted: frozenset[str], excused: frozenset[str]) -> Tensor:
    requires = value.dtype.is_floating_point and (not wanted or name in wanted)
    requires = requires and name.partition("[")[0] not in excused
    return value.detach().requires_grad_(requires)


def _permuted(value: Tensor, axes: tuple[str, ...], permute: Mapping[str, Tensor]) -> Tensor:
    for axis, name in enumerate(axes):
        if name in permute:
            value = value.index_select(axis, permute[name].to(value.device))
    return value


def outputs_by_name(answer: Any, *, expected: bool) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Return what an op gave by name, and in sentences what is no tensor; `expected` says that there must be some."""
    if isinstance(answer, Tensor):
        return {"out": answer}, ()
    if isinstance(answer, list | tuple):
        named = dict(_items("out ", answer))
        odd = [f"returned {type(item).__name__} as {name}; it should return a Tensor there"
               for name, item in named.items() if not isinstance(item, Tensor)]  # fmt: skip
        if expected and not named:
            odd.append("returned no Tensor; it should return at least one")
        return {name: item for name, item in named.items() if isinstance(item, Tensor)}, tuple(odd)
    if answer is None and not expected:
        return {}, ()
    return {}, (f"returned {type(answer).__name__}; it should return a Tensor or a tuple of Tensors",)


def _items(prefix: str, answer: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield what a tuple holds by its place, lists in it too; a None is an output that was not asked for."""
    for at, item in enumerate(answer):
        if isinstance(item, list | tuple):
            yield from ((f"{prefix}{at}[{inner}]", value) for inner, value in _items("", item))
        elif item is not None:
            yield f"{prefix}{at}", item


def _with_gradients(
    run: Run,
    call: Call,
    case: Case,
    role: Role,
    permute_outputs: Mapping[str, tuple[tuple[int, Tensor], ...]],
    watch: Keeps | None,
    memory: Surrounds | None,
) -> Run:
    leaves = [(name, value) for name, value in call.tensors() if value.requires_grad]
    live = live_outputs(run.outputs, case)
    floating = {name: value for name, value in run.outputs.items() if value.dtype.is_floating_point}
    detached = tuple(name for name, value in floating.items() if not value.requires_grad) if leaves else ()
    if not leaves or not live:
        nothing: dict[str, Tensor | None] = {f"grad {name}": None for name, _ in leaves}
        return replace(run, detached=detached, gradients=nothing)
    cotangents = []
    for name, value in live.items():
        drawn = cotangent(case, role, name, value)
        for axis, order in permute_outputs.get(name, ()):
            drawn = drawn.index_select(axis, order.to(drawn.device))
        if memory is not None:
            drawn = memory.given(f"{GRADIENT}{name}", drawn)
        cotangents.append(drawn)
        if watch is not None:
            watch.keep(f"{GRADIENT}{name}", drawn)
    if watch is not None:
        for name, value in run.outputs.items():
            watch.keep(name, value, given=False)
    try:
        with memory.inside() if memory is not None else contextlib.nullcontext():
            found = torch.autograd.grad(list(live.values()), [v for _, v in leaves], cotangents, allow_unused=True)
        settle(cotangents[0].device)
    except (Exception, SystemExit) as error:
        raised = describe(error, role, "backward")
        if role != "target" or unusable(cotangents[0].device):
            raise RoleFailed(raised) from error
        return replace(run, detached=detached, backward=raised)
    gradients = {f"grad {name}": value for (name, _), value in zip(leaves, found, strict=True)}
    outputs = {name: value.detach() for name, value in run.outputs.items()}
    return replace(run, outputs=outputs, detached=detached, gradients=gradients)


def live_outputs(outputs: Mapping[str, Tensor], case: Case) -> dict[str, Tensor]:
    """Return the outputs through which a gradient flows in a case: differentiable, and used."""
    used = case.used or frozenset(outputs)
    return {name: value for name, value in outputs.items() if value.requires_grad and name in used}


def cotangent(case: Case, role: Role, name: str, output: Tensor) -> Tensor:
    """Return the upstream gradient that a role receives for an output: the shared values, for the target laid out."""
    drawn = upstream(case, name, output)
    layout = case.layouts.get(f"{GRADIENT}{name}")
    return laid_out(layout, drawn, gradient=True) if layout and role == "target" else drawn
