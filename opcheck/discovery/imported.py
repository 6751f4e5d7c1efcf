"""The child's side: import a package and say which operators torch's dispatcher knows since."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

KEYS = ("CPU", "CUDA", "XPU", "HPU", "MPS", "Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd")
#: Namespaces of torch's own that an import may fill late.
TORCH = frozenset({
    "aten", "prim", "prims", "quantized", "quantized_decomposed", "onnx", "c10d", "_c10d_functional", "symm_mem",
    "_dtensor", "fsdp", "inductor", "_inductor_test", "streams", "higher_order", "debugprims", "rngprims",
    "dist", "c10d_functional",
})  # fmt: skip
LONGEST = 200


def serve(channel: Any, payload: Mapping[str, Any]) -> None:
    """Answer an item `{"modules": [...]}` with the operators that are new once they are imported."""
    import torch

    torch.set_num_threads(1)
    for item in channel.items():
        known = set(torch._C._dispatch_get_all_op_names())
        operators, failures = [], {}
        for name in item["modules"]:
            channel.send({"importing": name})
            try:
                importlib.import_module(name)
            except BaseException as error:
                text = re.sub(r"\s+", " ", str(error)).strip()
                failures[name] = f"{type(error).__name__}: {text}"[:LONGEST]
            new = sorted(set(torch._C._dispatch_get_all_op_names()) - known)
            known.update(new)
            told = (about(op) for op in new if op.partition("::")[0] not in TORCH)
            operators += [{**found, "module": found["module"] or name} for found in told if found]
        operators.sort(key=lambda found: str(found["name"]))
        channel.send({"operators": operators, "failures": failures})


def about(name: str) -> dict[str, Any]:
    """Return what is known of an operator as plain values, nothing where it has no schema."""
    from torch._library import simple_registry
    from torch._library.custom_ops import OPDEFS

    from opcheck.errors import RegistrationError
    from opcheck.run.targets import overload_named

    bare, _, overload = name.partition(".")
    try:
        op = overload_named(f"{bare}.{overload or 'default'}")
    except RegistrationError:
        return {}
    definition = OPDEFS.get(bare)
    devices = set(definition._backend_fns) if definition is not None else set()
    body = definition._init_fn if definition is not None else None
    if definition is not None and body is not None and body.__module__ == "torch._library.triton":
        body = definition._abstract_fn
    found = simple_registry.singleton.find(bare).fake_impl.kernel is not None
    fake = found if definition is None else definition._abstract_fn is not None
    return {
        "name": name,
        "schema": str(op._schema),
        "parameters": list(_parameters(op._schema)),
        "kernels": sorted("any" if item is None else str(item) for item in devices) if devices else list(_keys(name)),
        "fake": bool(fake or _has(name, "Meta") or _has(name, "CompositeImplicitAutograd")),
        "autograd": _differentiable(name) if definition is None else definition._backward_fn is not None,
        "body": f"{body.__module__}.{body.__qualname__}".replace(".<locals>", "") if body is not None else "",
        "module": body.__module__ if body is not None else "",
    }


def _has(name: str, key: str) -> bool:
    import torch

    with contextlib.suppress(RuntimeError):
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, key))
    return False


def _keys(name: str) -> Iterator[str]:
    yield from (key for key in KEYS if _has(name, key))


def _differentiable(name: str) -> bool:
    return any(_has(name, key) for key in ("Autograd", "AutogradCPU", "AutogradCUDA", "CompositeImplicitAutograd"))


def _parameters(schema: Any) -> Iterator[dict[str, str]]:
    for item in schema.arguments:
        default = repr(item.default_value) if item.has_default_value() else ""
        yield {"name": item.name, "type": str(item.type), "default": default}
