"""Put an op to one test of `torch.library.opcheck`, with inputs that require grad."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch

from opcheck.core.case import Case
from opcheck.core.outcome import Registered, Registration
from opcheck.core.policy import Contract
from opcheck.core.spec import OpSpec
from opcheck.run.inputs import draw
from opcheck.run.seeds import generators_kept, seeded

_allclose = torch.allclose
LONGEST = 700  # characters of torch's message
_TOLERANCE = 1e-2  # for ops declared nondeterministic; torch ignores tolerances of 0, so neither may be 0


def registration(spec: OpSpec, contract: Contract, case: Case, device: torch.device, trial: Registration) -> Registered:
    """Run one test; an op whose differentiable inputs are all declared `no_grad` is tested without gradients."""
    call = draw(spec, case, device)
    excused = contract.no_grad
    differentiable = not spec.mutated

    def leaf(name: str, value: torch.Tensor) -> torch.Tensor:
        wanted = differentiable and value.dtype.is_floating_point and name.partition("[")[0] not in excused
        return value.detach().requires_grad_(wanted)

    call = call.map(leaf)
    loose = {"rtol": _TOLERANCE, "atol": _TOLERANCE} if trial.nondeterministic else {}
    with (
        warnings.catch_warnings(),
        mock.patch.object(torch, "allclose", _close),
        undecomposed(),
        generators_kept(device),
    ):
        warnings.simplefilter("ignore")
        seeded(0)  # so that a random op is given the same answer whenever it is asked again
        results = torch.library.opcheck(
            spec.op, call.args, call.kwargs, test_utils=trial.test, raise_exception=False, **loose
        )
    said = next(iter(results.values()))
    return Registered(failure="" if said == "SUCCESS" else _short(said))


def _close(one: torch.Tensor, other: torch.Tensor, **options: Any) -> bool:
    """Compare as torch.allclose does, which torch's own test uses and which is not made for 8-bit floats."""
    return _allclose(_wide(one), _wide(other), **options)


def _wide(item: torch.Tensor) -> torch.Tensor:
    return item.float() if item.dtype.is_floating_point and item.dtype.itemsize == 1 else item


@contextlib.contextmanager
def undecomposed() -> Iterator[None]:
    """Keep triton_ops whole while they are traced: taken apart, they need kernels that can be compiled here."""
    from torch.export import _trace

    whole = getattr(_trace, "_disable_custom_triton_op_functional_decomposition", None)
    with whole() if whole is not None and not torch.cuda.is_available() else contextlib.nullcontext():
        yield


def _short(said: object) -> str:
    """Return the sentence of torch's message that says what is wrong."""
    cause = said
    while isinstance(cause, BaseException) and cause.__cause__ is not None:
        cause = cause.__cause__
    text = re.sub(r"\s+", " ", str(cause)).strip() or type(cause).__name__
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."
