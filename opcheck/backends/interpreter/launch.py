"""Give an interpreted launch the habits of a compiled one: argument types, loop variables, warnings, fake tensors."""

from __future__ import annotations

import ast
import contextlib
import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from triton.runtime import interpreter
from triton.runtime.errors import InterpreterError

from opcheck.backends.interpreter.origins import ORIGIN, one_launch

#: The name that rewritten kernels call where their source says `range`.
LOOP_NAME = "_opcheck_range"

#: Programs along x, y and z of the largest grid that CUDA launches (CUDA C++ Programming Guide, compute capabilities).
LARGEST_GRID = (2**31 - 1, 65_535, 65_535)

#: Namespaces already patched in the launch that runs; None outside any launch.
_patched: set[int] | None = None

#: Is told of every launch, with the executor of the grid and the arguments; active while it runs. The repair puts
#: `opcheck.backends.interpreter.guard` here.
Watcher = Callable[[Any, tuple[Any, ...], dict[str, Any]], AbstractContextManager[None]]
_watcher: Watcher | None = None

_PLAIN_ARGUMENT = interpreter._implicit_cvt
_PLAIN_RUN = interpreter.InterpretedFunction.run
_PLAIN_GRID = interpreter.InterpreterBuilder.set_grid_dim
_PLAIN_LAUNCH = interpreter.GridExecutor.__call__
_PLAIN_LANGUAGE = interpreter._patch_lang_core
_PLAIN_REWRITE = interpreter.FunctionRewriter.ast_transformer


class GridTooLarge(RuntimeError):
    """A launch that no GPU takes: CUDA calls it an invalid argument."""


def set_grid_dim(self: Any, *sizes: int) -> None:
    """Set the size of the grid, if a GPU would take it.

    Raises:
        GridTooLarge: It would not.
    """
    for axis, size, most in zip("xyz", sizes, LARGEST_GRID, strict=True):
        if size > most:
            raise GridTooLarge(f"the grid has {size:,} programs along {axis}, and on a GPU it ends at {most:,}")
    _PLAIN_GRID(self, *sizes)


def implicit_cvt(argument: Any) -> Any:
    """Turn a Python float into an fp32 tensor, as a compiled launch does; all else as before."""
    if isinstance(argument, float):
        return tl.tensor(interpreter.TensorHandle(np.array([argument], np.float32), tl.float32), tl.float32)
    converted = _PLAIN_ARGUMENT(argument)
    if hasattr(argument, "data_ptr") and (tensor := tensor_of(argument)) is not None:
        converted.handle.attr[ORIGIN] = (tensor.untyped_storage().data_ptr(), tensor.data_ptr())
    return converted


def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
    """Launch, unless an argument has no memory: then there is nothing to compute."""
    if _without_memory((*args, *kwargs.values())):
        return None
    return _PLAIN_RUN(self, *args, grid=grid, warmup=warmup, **kwargs)


def launch(self: Any, *args: Any, **kwargs: Any) -> None:
    """Run the grid without NumPy's floating-point warnings: a GPU has none."""
    global _patched
    outer, _patched = _patched, set()
    try:
        watched = _watcher(self, args, kwargs) if _watcher is not None else contextlib.nullcontext()
        with np.errstate(all="ignore"), one_launch(), watched:
            _PLAIN_LAUNCH(self, *args, **kwargs)
    finally:
        _patched = outer


def call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a device function; its namespace is patched once a launch, not once a call, which halves the cost.

    Raises:
        InterpreterError: The function raised, and `triton.knobs.compilation.front_end_debugging` is off.
    """
    namespace = id(self.fn.__globals__)
    if _patched is None or namespace not in _patched:
        interpreter._patch_lang(self.fn)
        if _patched is not None:
            _patched.add(namespace)
    try:
        return self.rewrite()(*args, **kwargs)
    except Exception as error:
        if triton.knobs.compilation.front_end_debugging:
            raise
        raise InterpreterError(repr(error)) from error


@contextlib.contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Enter `watcher(executor, args, kwargs)` around every interpreted launch inside the block."""
    global _watcher
    previous, _watcher = _watcher, watcher
    try:
        yield
    finally:
        _watcher = previous


def tensor_of(value: Any) -> torch.Tensor | None:
    """Return the tensor that an argument of a launch is, or wraps; None for all else."""
    found = value if isinstance(value, torch.Tensor) else getattr(value, "base", None)
    return found if isinstance(found, torch.Tensor) else None


def tensors_of(executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors among the arguments of a launch by their names, those in tuples as `xs[0]`."""
    yield from _named({**dict(zip(executor.arg_names, args, strict=False)), **kwargs})


def _named(arguments: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in arguments.items():
        if isinstance(value, tuple):
            yield from _named({f"{name}[{at}]": item for at, item in enumerate(value)})
        elif (tensor := tensor_of(value)) is not None:
            yield name, tensor


def _without_memory(values: tuple[Any, ...]) -> bool:
    for value in values:
        if isinstance(value, tuple):
            if _without_memory(value):
                return True
            continue
        tensor = tensor_of(value)
        if tensor is not None and (
            tensor.is_meta or isinstance(tensor, FakeTensor | FunctionalTensor) or torch._is_functional_tensor(tensor)
        ):
            return True
    return False


def loop(*bounds: Any, **_: Any) -> Iterator[Any]:
    """Count as `range` does, in int32 tensors, or int64 ones where a bound is 64 bits wide."""
    numbers = [operator.index(bound) for bound in bounds if bound is not None]
    wide = any(isinstance(bound, tl.tensor) and bound.dtype.primitive_bitwidth > 32 for bound in bounds)
    wide = wide or any(not -(2**31) <= number < 2**31 for number in numbers)
    dtype, kind = (np.int64, tl.int64) if wide else (np.int32, tl.int32)
    for number in range(*numbers):
        yield tl.tensor(interpreter.TensorHandle(np.array([number], dtype), kind), kind)


def _tl_range(arg1: Any, arg2: Any = None, step: Any = None, **_: Any) -> Iterator[Any]:
    start, end = (0, arg1) if arg2 is None else (arg1, arg2)
    return loop(start, end, 1 if step is None else step)


def patch_lang_core(lang: Any, scope: Any) -> None:
    """Patch `triton.language` as before, with a `tl.range` that counts in tensors."""
    _PLAIN_LANGUAGE(lang, scope)
    scope.set_attr(lang, "range", _tl_range)


class Rewriter(ast.NodeTransformer):
    """Replace the `range` of a `for` loop, then rewrite as Triton does; one object serves all kernels."""

    def visit(self, node: ast.AST) -> Any:
        """Rewrite a parsed kernel."""
        if isinstance(node, ast.Module):
            return _PLAIN_REWRITE.visit(self.generic_visit(node))
        return super().visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        """Count in tensors where the loop's iterable is a call of `range`."""
        self.generic_visit(node)
        call = node.iter
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range":
            call.func = ast.copy_location(ast.Name(id=LOOP_NAME, ctx=ast.Load()), call.func)
        return node
