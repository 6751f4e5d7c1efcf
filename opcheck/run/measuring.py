"""Measure a target's tensor as its op's contract has it judged."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from opcheck.core.floats import round_to
from opcheck.core.formats import FORMATS
from opcheck.core.measure import dtype_name, measure
from opcheck.core.measured import Measured
from opcheck.core.policy import Contract

QUANTIZE = "quantize"  # the kind
FLOAT32 = FORMATS["float32"]


def measured_as(
    contract: Contract,
    name: str,
    target: Tensor,
    reference: Tensor,
    golden: Tensor,
    *,
    inputs_finite: bool = True,
    steady: Callable[[], Tensor | None] = lambda: None,
) -> Measured:
    """Measure one tensor `[*S]` of an op.

    Args:
        steady: Gives golden under `Nudged`; it is asked for only where ties of a quantization are at issue.
    """

    def judged(nudged: Tensor | None) -> Measured:
        return measure(
            name, target, reference, golden,
            gradient=name.startswith("grad "),
            inputs_finite=inputs_finite,
            overflow=contract.overflow if target.dtype.itemsize == 1 else "ieee",
            existing=contract.existing.get(dtype_name(target.dtype)),
            quantized=contract.kind == QUANTIZE,
            steady=nudged,
        )  # fmt: skip

    found = judged(None)
    return judged(steady()) if found.ties else found


class Nudged:
    """The surroundings of a golden whose every step that float32 would round is off by such a rounding.

    What golden gives nevertheless is exact in float32, whatever the order of its steps.
    """

    def given(self, name: str, tensor: Tensor) -> Tensor:
        """Return the tensor itself."""
        return tensor

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """Be around golden's code."""
        return _Nudge()


class _Nudge(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Move what an operation gives in FP64 and float32 cannot hold; each operation by an amount of its own."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._steps = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if any(item.alias_info is not None for item in func._schema.returns):  # a view, or written in place
            return result
        self._steps += 1
        factor = 1.0 + FLOAT32.unit * (1.0 + self._steps / 7.0)
        return tree_map(lambda item: _moved(item, factor), result)


def _moved(item: Any, factor: float) -> Any:
    if not isinstance(item, Tensor) or item.dtype != torch.float64:
        return item
    return torch.where((round_to(item, FLOAT32) == item) | ~item.isfinite(), item, item * factor)
