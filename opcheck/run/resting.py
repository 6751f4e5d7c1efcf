"""What the registry's ops rest on, as the worker that has imported them can tell."""

from __future__ import annotations

import importlib.metadata
import inspect
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from opcheck.core.spec import OpSpec
from opcheck.run.closure import closure
from opcheck.run.watching import Watch

#: Where torch keeps what was registered for a custom op.
_REGISTERED = ("_init_fn", "_abstract_fn", "_backward_fn", "_setup_context_fn", "_vmap_fn")


def resting(specs: Mapping[str, OpSpec], modules: Collection[str], watch: Watch) -> dict[str, Any]:
    """Return the files, folders and distributions on which each op, and the registry as a whole, rest."""
    return {
        "ops": {name: _of(spec, watch) for name, spec in specs.items()},
        "files": sorted({*_loaded(watch), *watch.reads[""], *(path for each in watch.reads.values() for path in each)}),
        "folders": sorted({".", *_folders(modules, watch)}),
    }


def _of(spec: OpSpec, watch: Watch) -> dict[str, list[str]]:
    found = closure({spec.module, *_modules(spec)} - {""}, watch)
    distributions = _distributions(found.others)
    return {"files": sorted(found.files), "distributions": sorted(distributions)}


def _modules(spec: OpSpec) -> Iterator[str]:
    """Yield the modules of all functions that an op is made of; a formula for autograd may stand beside the op."""
    op = spec.op
    functions = [spec.target, spec.reference, spec.golden, spec.samples, spec.terms]
    functions += [getattr(op, name, None) for name in _REGISTERED]
    functions += getattr(op, "_backend_fns", {}).values()
    for function in functions:
        for each in (function, getattr(function, "__self__", None)):
            plain = inspect.unwrap(each) if callable(each) else each
            yield getattr(plain, "__module__", None) or ""


def _distributions(tops: set[str]) -> set[str]:
    if not tops - {"torch", "triton", "numpy", "ml_dtypes"}:
        return set()
    offered = importlib.metadata.packages_distributions()
    # What is tried and not installed is missing by its own name: once it is installed, the op may use it.
    return {name for top in tops for name in offered.get(top, (top,))}


def _loaded(watch: Watch) -> Iterator[str]:
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is not None and spec.has_location and (path := watch.project.module(name, spec.origin or "")):
            yield path


def _folders(modules: Collection[str], watch: Watch) -> Iterator[str]:
    """Yield the folders in which a new file may register another op, or be imported in place of what was."""
    yield from (os.path.dirname(path) or "." for path in _loaded(watch))
    for name, module in list(sys.modules.items()):
        if any(f"{name}.".startswith(f"{each}.") for each in modules):
            for folder in getattr(module, "__path__", ()):
                yield os.path.relpath(os.path.realpath(folder), watch.project.root)
