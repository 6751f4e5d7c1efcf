"""`torch.compile` around an op: traced on some values and one size, then used on others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo
from torch import Tensor
from torch.utils._pytree import tree_map

from opcheck.core.behaviour import Behaviour
from opcheck.core.case import Case
from opcheck.core.composition import Compiler
from opcheck.core.resized import resized
from opcheck.core.spec import OpSpec
from opcheck.run.comparison import Comparison, shortened, through
from opcheck.run.composition.breathing import breathing
from opcheck.run.composition.readiness import unready
from opcheck.run.library import undecomposed
from opcheck.run.roles import RoleFailed

_EXACT = (torch.float16, torch.bfloat16, torch.float32, torch.float64)  # negated without rounding, and by inductor


def compiled(comparison: Comparison, backend: Compiler) -> Behaviour:
    """Trace on a sibling's values, then run the sibling, the case, and the case in another size.

    Each is compiled, called and only then run eagerly: what the ordinary run leaves behind must not help the trace.
    With inductor all sizes are symbols from the start; with aot_eager they become symbols when they change.
    """
    why = unready(comparison.device.type, comparison.tell) if backend == "inductor" else ""
    if why:
        return comparison.behaviour(f"torch.compile (inductor): {why}")
    other = resized(comparison.contract, comparison.case)
    cases = [comparison.sibling(), comparison.case, *([other] if other is not None else [])]
    with _fresh(backend):
        function = torch.compile(
            surrounded(comparison.spec),
            backend=backend,
            fullgraph=True,
            dynamic=True if backend == "inductor" else None,
        )
        spec = through(comparison.spec, apart(comparison.spec, function))
        for case in cases:
            same = case.dims == comparison.case.dims
            when = "" if same else f"with {', '.join(f'{k}={v}' for k, v in case.dims.items())} after another size"
            if not same and not _legal(comparison, case):
                continue
            try:
                with breathing(comparison.tell):
                    found = comparison.run(spec, case)
            except RoleFailed as failed:
                comparison.problem("the op", when, f"raises: {shortened(failed.raised.message)}")
                break
            comparison.add(when, found, case)
        comparison.note(f"{torch._dynamo.utils.counters['stats']['unique_graphs']} graphs for {len(cases)} inputs")
    return comparison.behaviour()


def surrounded(spec: OpSpec) -> Callable[..., Any]:
    """Return the op between negations, which are exact: what it takes and gives is then the compiler's to plan."""
    target, mutated = spec.target, _mutated_at(spec)

    def used(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(negated, (args, kwargs))
        out = target(*args, **kwargs)
        return tree_map(negated, (out, [value for at, value in named(args, kwargs) if at in mutated]))

    return used


def apart(spec: OpSpec, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that negates what `surrounded` negates, so that the two cancel."""
    mutated = _mutated_at(spec)

    def used(*args: Any, **kwargs: Any) -> Any:
        out, changed = tree_map(negated, function(*tree_map(negated, args), **tree_map(negated, kwargs)))
        given = [value for at, value in named(args, kwargs) if at in mutated]
        tree_map(_written, given, changed)
        return out

    return used


def negated(value: Any) -> Any:
    """Return `-value` where that is exact, anything else as it is."""
    return -value if isinstance(value, Tensor) and value.dtype in _EXACT else value


def named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[int | str, Any]]:
    """Return arguments by position or keyword."""
    return [*enumerate(args), *kwargs.items()]


def _written(given: Any, changed: Any) -> None:
    if isinstance(given, Tensor):
        given.copy_(changed)


def _mutated_at(spec: OpSpec) -> frozenset[int | str]:
    """Return where the arguments stand that the op writes into, by position and by keyword."""
    places = {item.name: at for at, item in enumerate(item for item in spec.arguments if not item.keyword_only)}
    return frozenset(key for name in spec.mutated for key in (name, places.get(name, name)))


def _legal(comparison: Comparison, case: Case) -> bool:
    """Say whether the op takes another size as it is; a contract may know more than its limits of sizes say."""
    try:
        comparison.usual(case)
    except Exception as error:
        comparison.note(f"another size was not tried: {shortened(str(error))}")
        return False
    return True


@contextlib.contextmanager
def _fresh(backend: Compiler) -> Iterator[None]:
    """Compile anew, in this process, without what another version of the op left in a cache on the disk."""
    import torch._functorch.config
    import torch._inductor.config

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    here: Any = torch._inductor.config.patch(compile_threads=1, fx_graph_cache=False)
    try:
        with here, torch._functorch.config.patch(enable_autograd_cache=False), undecomposed():
            yield
    finally:
        torch._dynamo.reset()
