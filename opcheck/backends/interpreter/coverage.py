"""Record which statements of interpreted kernels run, and which states their masks have, by specialisation.

The marks stand in the kernels' own code, put there when Triton's interpreter rewrites it: nothing is traced, and
kernels that were not rewritten inside of `Recorder.recording` carry none.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from opcheck.backends.interpreter.statements import MASKED, REACHED, mark, source_of
from opcheck.core.kernel_coverage import BLOCK, OFF, ON, PARTLY, Ran, Source

_EVERY = ON | PARTLY | OFF | BLOCK
_FOREIGN = frozenset({"triton", "opcheck"})  # packages whose functions are not the author's
_LAUNCH_ONLY = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg"})  # mean nothing to an interpreter

Specialisation = tuple[str, tuple[tuple[str, str], ...]]  # a kernel's key, and its constants


@dataclass(slots=True)
class _Reached:
    """The numbers of statements that ran in launches of one specialisation, and the states of masks by number."""

    statements: set[int] = field(default_factory=set)
    masks: dict[int, int] = field(default_factory=dict)


class _Places:
    """Numbers the statements, or the masks, of one function after another."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._keys: list[str] = []
        self._next = 0

    def add(self, key: str, count: int) -> int:
        """Return the number of the first of `count` places of a function."""
        start = self._next
        if count:
            self._starts.append(start)
            self._keys.append(key)
            self._next += count
        return start

    def owner(self, number: int) -> tuple[str, int]:
        """Return the function of a number, and the place in it."""
        at = bisect_right(self._starts, number) - 1
        return self._keys[at], number - self._starts[at]


class Recorder:
    """Records what the kernels reach that are launched inside of `recording`."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._told: set[str] = set()
        self._statements, self._masks = _Places(), _Places()
        self._rewritten: dict[Any, Any] = {}
        self._keys: dict[Any, str] = {}
        self._combines: dict[Any, Any] = {}
        self._seen: dict[Specialisation, _Reached] = {}
        self._now = _Reached()

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Have every kernel that runs inside the block carry marks."""
        function, executor = interpreter.InterpretedFunction, interpreter.GridExecutor
        rewriter, combining = interpreter.FunctionRewriter, interpreter.ReduceScanOpInterface
        launch, rewrite, combine = executor.__call__, rewriter.rewrite_ast, combining.__init__

        def launched(grid: Any, *args: Any, **kwargs: Any) -> Any:
            with self._launch(grid, args, kwargs):
                return launch(grid, *args, **kwargs)

        def rewritten(rewriting: Any) -> Any:
            if _is_foreign(rewriting.fn):
                return rewrite(rewriting)
            rewriting.ast_transformer = marking = _Marking(self, rewriting.fn, rewriting.ast_transformer)
            try:
                marked = rewrite(rewriting)
            finally:
                del rewriting.ast_transformer
            if marking.key:
                self._keys[marked] = marking.key
            return marked

        def combined(operation: Any, axis: Any, combine_fn: Any) -> None:
            combine(operation, axis, self._marked_combine(combine_fn))

        kept = function.rewritten_fn
        function.rewritten_fn = self._rewritten
        executor.__call__, rewriter.rewrite_ast, combining.__init__ = launched, rewritten, combined
        try:
            yield
        finally:
            function.rewritten_fn = kept
            executor.__call__, rewriter.rewrite_ast, combining.__init__ = launch, rewrite, combine

    def clear(self) -> None:
        """Forget what has run."""
        self._seen.clear()

    def take(self) -> tuple[list[Source], list[Ran]]:
        """Return what has run since the last call, and the sources of the functions that were not returned before."""
        ran = [
            item
            for (launched, constants), reached in self._seen.items()
            for item in self._by_function(launched, dict(constants), reached)
        ]
        self.clear()
        fresh = {item.function: None for item in ran if item.function not in self._told}
        self._told |= fresh.keys()
        return [self._sources[key] for key in fresh], ran

    def add(self, function: Any) -> tuple[Source, int, int]:
        """Learn of a function that is to be marked: its source, and the numbers of its first statement and mask."""
        source = source_of(function)
        assert source is not None  # Triton has just read it
        self._sources[source.key] = source
        return (
            source,
            self._statements.add(source.key, len(source.statements)),
            self._masks.add(source.key, len(source.masks)),
        )

    def mask(self, number: int, value: Any) -> Any:
        """Note the state of a mask, and return it."""
        had = self._now.masks.get(number, 0)
        if value is None or had == _EVERY:
            return value
        lanes = value.handle.data if isinstance(value, tl.tensor) else np.asarray(getattr(value, "value", value))
        on = np.count_nonzero(lanes)
        state = ON if on == lanes.size else PARTLY if on else OFF
        self._now.masks[number] = had | state | (BLOCK if lanes.size > 1 else 0)
        return value

    @contextlib.contextmanager
    def _launch(self, grid: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[None]:
        """Book what runs in the block under the specialisation that is launched."""
        if grid.fn not in self._keys:
            yield
            return
        given = {**dict(zip(grid.arg_names, args, strict=False)), **kwargs}
        given = {**_defaults(grid.fn), **given}
        constants = tuple(sorted((name, _text(given[name])) for name in _constexprs(grid) if name in given))
        key = self._keys[grid.fn], constants
        self._now.statements.clear()
        self._now.masks.clear()
        try:
            yield
        finally:
            into = self._seen.setdefault(key, _Reached())
            into.statements |= self._now.statements
            for number, states in self._now.masks.items():
                into.masks[number] = into.masks.get(number, 0) | states

    def _by_function(self, launched: str, constants: Mapping[str, str], reached: _Reached) -> Iterator[Ran]:
        statements: dict[str, list[int]] = {launched: []}
        masks: dict[str, dict[str, int]] = {}
        for number in sorted(reached.statements):
            key, place = self._statements.owner(number)
            statements.setdefault(key, []).append(place)
        for number, states in sorted(reached.masks.items()):
            key, place = self._masks.owner(number)
            masks.setdefault(key, {})[str(place)] = states
        for key, places in statements.items():
            yield Ran(
                function=key, kernel=self._sources[launched].name, constants=constants, statements=tuple(places),
                masks=masks.get(key, {}),
            )  # fmt: skip

    def _marked_combine(self, combine: Any) -> Any:
        """Return a combine function with marks: reductions and scans call its Python function, which nobody rewrites.

        One with a closure stays as it is, for it would lose that.
        """
        function = combine.fn if isinstance(combine, interpreter.InterpretedFunction) else None
        if function is None or _is_foreign(function) or function.__closure__:
            return combine
        if function not in self._combines:
            rewriting = interpreter.FunctionRewriter(function)
            rewriting.ast_transformer = ast.NodeTransformer()
            self._combines[function] = SimpleNamespace(fn=rewriting.rewrite_ast())
        return self._combines[function]

    def names(self) -> dict[str, Any]:
        """Return what marked functions call, for their namespaces."""
        return {REACHED: self._now.statements.add, MASKED: self.mask}


class _Marking:
    """Marks one function, then has it rewritten as without.

    Attributes:
        key: Of its source, empty until it was visited.
    """

    def __init__(self, recorder: Recorder, function: Any, then: Any) -> None:
        self._recorder, self._function, self._then = recorder, function, then
        self.key = ""

    def visit(self, node: ast.Module) -> Any:
        """Rewrite a parsed function."""
        source, statement, mask = self._recorder.add(self._function)
        definition = node.body[0]
        assert isinstance(definition, ast.FunctionDef)
        mark(definition, self._function.__globals__, statement, mask)
        self.key = source.key
        self._function.__globals__.update(self._recorder.names())
        return self._then.visit(node)


def inventory(modules: Collection[str]) -> list[Source]:
    """Return every `@triton.jit` function that stands in the modules, or in those of packages among them."""
    found: dict[str, Source] = {}
    for name, module in sorted(sys.modules.items()):
        if not any(f"{name}.".startswith(f"{root}.") for root in modules):
            continue
        for value in [*vars(module).values()]:
            function, configs = _unwrapped(value)
            if function is None or function.fn.__module__ != name or (source := source_of(function.fn)) is None:
                continue
            known = found.get(source.key, source)
            found[source.key] = replace(known, configs=known.configs or configs)
    return list(found.values())


def _unwrapped(value: Any) -> tuple[Any, tuple[dict[str, str], ...]]:
    """Return the function under autotuners and heuristics, None where there is none; and its configurations."""
    configs: list[Any] = []
    while isinstance(value, interpreter.KernelInterface) and not isinstance(value, interpreter.InterpretedFunction):
        configs += getattr(value, "configs", [])
        value = getattr(value, "fn", None)
    if not isinstance(value, interpreter.InterpretedFunction):
        return None, ()
    names = _constexprs(interpreter.GridExecutor(value.fn, value.arg_names, None))
    return value, tuple({k: _text(v) for k, v in item.kwargs.items() if k in names} for item in configs)


def _constexprs(grid: Any) -> list[str]:
    return [name for name in grid.constexprs if name not in _LAUNCH_ONLY]


def _defaults(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {item.name: item.default for item in parameters if item.default is not inspect.Parameter.empty}


def _text(value: Any) -> str:
    """Write a constant as it tells specialisations apart."""
    value = getattr(value, "value", value) if isinstance(value, tl.constexpr) else value
    if isinstance(value, interpreter.InterpretedFunction):
        return str(value.__name__)
    return repr(value) if isinstance(value, int | float | str | bool | tuple | None) else str(value)


def _is_foreign(function: Any) -> bool:
    return str(function.__module__).partition(".")[0] in _FOREIGN
