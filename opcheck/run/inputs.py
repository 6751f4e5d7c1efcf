"""Draw the inputs of a case, the same bits for every run of it."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from opcheck.core.case import Case, Sample
from opcheck.core.facts import InputKind
from opcheck.core.families import Family, family
from opcheck.core.policy import DTYPES
from opcheck.core.spec import OpSpec
from opcheck.core.variants import variant_values
from opcheck.errors import BadCase, SampleError
from opcheck.run.values import booleans, fill, integers, offsets

DRAWN_ON_DEVICE = 1 << 20  # elements


class Drawer:
    """The `Builder` of a run: seeded by case and tensor name, so that the order of the draws does not matter.

    Attributes:
        axes: For each drawn tensor, the names of its dimensions, outermost first.
        drawn: For each drawn tensor, which builder drew it and the dimension names that it was asked for with.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.axes: dict[str, tuple[str, ...]] = {}
        self.drawn: dict[str, tuple[InputKind, tuple[str, ...]]] = {}

    def tensor(self, case: Case, dims: tuple[str, ...], name: str, dtype: str | None) -> Tensor:
        self.drawn[name] = "float", dims
        found = _family_of(case)
        wanted = dtype or case.dtype_of(name)
        if wanted not in DTYPES:
            raise SampleError(
                f"{case.op}: samples asks for {name} in {wanted!r}; the element types are {', '.join(DTYPES)}"
            )
        normal = standard_normal(case.shape(*dims), f"{case.seed}|{case.op}|{name}", self._device)
        first = not self.axes
        ordinary = "float" not in found.fills or (found.first_only and not first)
        self._note(case, name, dims)
        filled = fill("normal" if ordinary else found.name, normal, wanted, first=first)
        return filled.to(getattr(torch, wanted)).to(self._device)

    def integers(self, case: Case, low: int, high: int, dims: tuple[str, ...], name: str) -> Tensor:
        self.drawn[name] = "integer", dims
        found, shape = _family_of(case), case.shape(*dims)
        return integers(found.name, low, high, shape, self._generator(case, name)).to(self._device)

    def offsets(self, case: Case, total: int, parts: int, name: str) -> Tensor:
        self.drawn[name] = "offsets", ()
        return offsets(_family_of(case).name, total, parts, self._generator(case, name)).to(self._device)

    def booleans(self, case: Case, dims: tuple[str, ...], name: str) -> Tensor:
        self.drawn[name] = "boolean", dims
        return booleans(_family_of(case).name, case.shape(*dims), self._generator(case, name)).to(self._device)

    def generator(self, case: Case) -> torch.Generator:
        return self._generator(case, "the author's own")

    def device(self) -> torch.device:
        return self._device

    def _note(self, case: Case, name: str, dims: tuple[str, ...]) -> None:
        leading = tuple(key for key in case.dims if key.startswith("..."))
        self.axes[name] = tuple(part for dim in dims for part in (leading if dim == "..." else (dim,)))

    def _generator(self, case: Case, name: str) -> torch.Generator:
        return seeded(f"{case.seed}|{case.op}|{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call's arguments by parameter name, ready to be changed and made.

    Attributes:
        names: Names of the positional arguments, then of the keywords.
        axes: Dimension names of the tensors that the case drew.
        drawn: Which builder drew them, and with which dimension names.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: tuple[str, ...]
    axes: dict[str, tuple[str, ...]]
    drawn: dict[str, tuple[InputKind, tuple[str, ...]]] = field(default_factory=dict)

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield every tensor with its name; those of a list are `xs[0]`, `xs[1]`."""
        for name, value in zip(self.names, (*self.args, *self.kwargs.values()), strict=True):
            if isinstance(value, Tensor):
                yield name, value
            elif isinstance(value, list | tuple):
                yield from ((f"{name}[{at}]", item) for at, item in enumerate(value) if isinstance(item, Tensor))

    def map(self, change: Callable[[str, Tensor], Tensor]) -> Call:
        """Return the call with `change(name, tensor)` in place of every tensor."""

        def apply(name: str, value: Any) -> Any:
            if isinstance(value, Tensor):
                return change(name, value)
            if isinstance(value, list | tuple):
                return type(value)(
                    change(f"{name}[{at}]", item) if isinstance(item, Tensor) else item for at, item in enumerate(value)
                )
            return value

        values = [apply(n, v) for n, v in zip(self.names, (*self.args, *self.kwargs.values()), strict=True)]
        count = len(self.args)
        return replace(self, args=tuple(values[:count]), kwargs=dict(zip(self.kwargs, values[count:], strict=True)))


def draw(spec: OpSpec, case: Case, device: torch.device) -> Call:
    """Draw the arguments of a case.

    Raises:
        SampleError: `samples` returned something else than a Sample, or one that the op does not take.
        BadCase: `samples` asked for a dimension that the case does not have, or the variant names no parameter.
    """
    drawer = Drawer(device)
    sample = spec.samples(replace(case, builder=drawer))
    if not isinstance(sample, Sample):
        raise SampleError(
            f"{spec.name}: samples returned {type(sample).__name__}; it should return opcheck.Sample(...)"
        )
    positional = parameter_names(spec, len(sample.args))
    args, kwargs = list(sample.args), dict(sample.kwargs)
    doubled = next((name for name in kwargs if name in positional), "")
    if doubled:
        raise SampleError(f"{spec.name}: samples gives {doubled!r} twice, by position and by name")
    known = {argument.name for argument in spec.arguments}
    for name in kwargs if known else ():
        if name not in known:
            raise SampleError(f"{spec.name}: samples gives {name!r}, which the op does not take; {spec.schema}")
    for name, value in variant_values(case.variant).items():
        if known and name not in known:
            raise BadCase(f"{case.id}: the variant names {name!r}, which the op does not take; {spec.schema}")
        if name in positional:
            args[positional.index(name)] = value
        else:
            kwargs[name] = value
    missing = [item.name for item in spec.arguments if not item.default and item.name not in (*positional, *kwargs)]
    if missing:
        raise SampleError(f"{spec.name}: samples gives no {', '.join(missing)}, which the op needs; {spec.schema}")
    return Call(args=tuple(args), kwargs=kwargs, names=(*positional, *kwargs), axes=drawer.axes, drawn=drawer.drawn)


def _family_of(case: Case) -> Family:
    found = family(case.values)
    if found is None:
        raise BadCase(f"{case.id}: {case.values!r} is not a family of values")
    return found


def parameter_names(spec: OpSpec, count: int) -> tuple[str, ...]:
    """Return the names of the first `count` positional parameters of the op.

    Raises:
        SampleError: The op takes fewer.
    """
    names = [argument.name for argument in spec.arguments if not argument.keyword_only]
    if not spec.arguments:
        try:
            parameters = inspect.signature(spec.target).parameters.values()
        except (TypeError, ValueError):
            parameters = inspect.signature(lambda *args: None).parameters.values()
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [item.name for item in parameters if item.kind in kinds]
        if any(item.kind is inspect.Parameter.VAR_POSITIONAL for item in parameters):
            names += [f"arg {at}" for at in range(len(names), count)]
    if count > len(names):
        raise SampleError(f"{spec.name}: samples gives {count} positional arguments; the op takes {len(names)}")
    return tuple(names[:count])


def standard_normal(shape: tuple[int, ...], text: str, device: torch.device) -> Tensor:
    """Draw standard normals `[*shape]` in float32, seeded by a text.

    They are drawn on the CPU, the same for every backend; more than `DRAWN_ON_DEVICE` of them on the device itself,
    where the interpreter does not go anyway.
    """
    if device.type == "cpu" or math.prod(shape) <= DRAWN_ON_DEVICE:
        return torch.randn(shape, generator=seeded(text), dtype=torch.float32)
    return torch.randn(shape, generator=seeded(text, device), dtype=torch.float32, device=device)


def seeded(text: str, device: torch.device | None = None) -> torch.Generator:
    """Return a generator seeded by a text; on the CPU, the same on every machine and in every process."""
    generator = torch.Generator(device or "cpu")
    generator.manual_seed(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest()))
    return generator
