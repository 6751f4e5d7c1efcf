"""See every launch of a Triton kernel, interpreted or compiled, and on wish let none of them run."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One launch, as `opcheck.core.facts.Launch` has it but for the sizes of the case, which nobody here knows.

    Attributes:
        jit: The kernel as Triton's decorator made it, and `args`, `kwargs` what it was called with.
    """

    kernel: str
    function: Any
    grid: tuple[int, int, int]
    constants: Mapping[str, int]
    warps: int
    tuned: bool
    jit: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Recording:
    """What was launched in a block: the launches in order, and for autotuned kernels how many configurations."""

    launches: list[Seen] = field(default_factory=list)
    configs: dict[str, int] = field(default_factory=dict)


@contextlib.contextmanager
def recorded(*, run: bool = True) -> Iterator[Recording]:
    """Record the launches in the block; with `run=False` none of them is carried out, and outputs hold anything."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    found = Recording()
    tuned = False
    plain = {owner: owner.run for owner in (InterpretedFunction, JITFunction, Autotuner)}

    def launch(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        if not warmup:
            found.launches.append(_seen(self, args, kwargs, grid, tuned))
        return plain[_owner(self, plain)](self, *args, grid=grid, warmup=warmup, **kwargs) if run or warmup else None

    def tune(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal tuned
        name = kernel_name(self.base_fn)
        found.configs[name] = max(found.configs.get(name, 0), len(self.configs))
        tuned, before = True, tuned
        try:
            return plain[Autotuner](self, *args, **kwargs)
        finally:
            tuned = before

    replaced = {InterpretedFunction: launch, JITFunction: launch, Autotuner: tune}
    try:
        for owner, function in replaced.items():
            owner.run = function
        yield found
    finally:
        for owner, function in plain.items():
            owner.run = function


def kernel_name(function: Any) -> str:
    """Return `module.qualname` of a kernel."""
    return f"{function.__module__}.{function.__qualname__}"


def _owner(kernel: Any, owners: Mapping[Any, Any]) -> Any:
    return next(owner for owner in owners if isinstance(kernel, owner))


def _seen(jit: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], grid: Any, tuned: bool) -> Seen:
    function = jit.fn
    parameters = inspect.signature(function).parameters
    bound = {name: item.default for name, item in parameters.items() if item.default is not inspect.Parameter.empty}
    bound |= dict(zip(parameters, args, strict=False))
    bound |= {name: value for name, value in kwargs.items() if name in parameters}
    sizes = grid(bound) if callable(grid) else grid
    programs = [int(size) for size in ((sizes,) if isinstance(sizes, int) else sizes)]
    constants = {
        name: int(value)
        for name, item in parameters.items()
        if "constexpr" in str(item.annotation) and isinstance(value := bound.get(name), int)
    }
    return Seen(
        kernel=kernel_name(function),
        function=function,
        grid=(*programs, 1, 1, 1)[:3],  # type: ignore[arg-type]
        constants=constants,
        warps=int(kwargs.get("num_warps", 0) or 0),
        tuned=tuned,
        jit=jit,
        args=args,
        kwargs=kwargs,
    )
