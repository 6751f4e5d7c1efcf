"""The reference's error on other draws of a case: what is beyond one draw's luck, and what it is relative to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from opcheck.core.case import Case
from opcheck.core.layouts import GRADIENT, layout_text, revalues_gradient
from opcheck.core.measure import measure_oracle
from opcheck.core.outcome import OracleError, OracleErrors, Role, Siblings
from opcheck.core.policy import Contract
from opcheck.core.shapes import odd
from opcheck.run.pooling import pooled
from opcheck.run.roles import Run, upstream

Runs = Callable[[Case, str, Role], Run]

STRIDE = 7919  # a prime, so that the siblings of two nearby seeds are not the same cases
_LABEL = "siblings"


def siblings(case: Case, count: int) -> list[Case]:
    """Return the case with `count` other seeds."""
    return [case.with_seed(case.seed + step * STRIDE) for step in range(1, count + 1)]


def oracle_errors(run: Runs, case: Case, trial: Siblings, contract: Contract) -> OracleErrors:
    """Return how far the reference is from golden over sibling seeds, and what vanishing gradients are relative to."""
    draws = []
    for sibling in siblings(case, trial.count):
        golden = run(sibling, _LABEL, "golden")
        reference = run(sibling, _LABEL, "reference")
        pairs = ((name, value, golden.tensors.get(name)) for name, value in reference.tensors.items())
        draws += [measure_oracle(name, value, truth) for name, value, truth in pairs if truth is not None]
    errors = pooled(item for item in draws if item is not None)
    if revalues_gradient(case.layouts):
        errors = _relative_to(_random_scales(run, case), errors)
    if trial.vanished:
        usual = replace(case, dims=odd(contract), values="normal", layout="")
        scales = _scales(run(usual, _LABEL, "golden"))
        errors = _relative_to({name: scales.get(name, 0.0) for name in trial.vanished}, errors)
    return OracleErrors(tensors=errors, draws=trial.count)


def _relative_to(scales: Mapping[str, float], errors: tuple[OracleError, ...]) -> tuple[OracleError, ...]:
    return tuple(replace(item, random_scale=max(item.random_scale, scales.get(item.tensor, 0.0))) for item in errors)


def _random_scales(run: Runs, case: Case) -> dict[str, float]:
    """Return `max|golden gradient|` under a random upstream gradient as large as the case's constant one."""
    plain = replace(case, layout=layout_text({k: v for k, v in case.layouts.items() if not k.startswith(GRADIENT)}))
    golden = run(plain, _LABEL, "golden")

    def largest(of: Case) -> float:
        floats = [(name, value) for name, value in golden.outputs.items() if value.dtype.is_floating_point]
        found = [float(upstream(of, name, value).abs().max()) for name, value in floats if value.numel()]
        return max(found, default=0.0)

    ratio = largest(case) / (largest(plain) or 1.0)
    return {name: scale * ratio for name, scale in _scales(golden).items()}


def _scales(golden: Run) -> dict[str, float]:
    """Return the largest finite magnitude of each gradient."""
    return {
        name: float(value.abs().nan_to_num(nan=0.0, posinf=0.0).max())
        for name, value in golden.gradients.items()
        if value is not None and value.numel()
    }
