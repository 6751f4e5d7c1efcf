"""Adopt a callable: until `opcheck.adopt` is merged, straight into the registry."""

import inspect
from dataclasses import replace

from opcheck.core.spec import Argument
from opcheck.registry import _SPECS, described, promote


def adopt(op, *, name, reference, samples, golden=None):
    parameters = inspect.signature(op).parameters.values()
    _SPECS[name] = replace(
        described(op, name), reference=reference, golden=golden or promote(reference), samples=samples,
        promoted=golden is None, module=op.__module__, qualname=op.__qualname__,
        arguments=tuple(
            Argument(
                name=item.name,
                kind="tensor" if "Tensor" in str(item.annotation) else "value",
                default="" if item.default is item.empty else repr(item.default),
            )
            for item in parameters
        ),
    )
    return op
