"""Use an op as users do, and hold what it gives against the ordinary run."""

from __future__ import annotations

import warnings
from typing import assert_never

import torch

from opcheck.core.behaviour import Behaviour
from opcheck.core.case import Case
from opcheck.core.composition import Captured, Checkpointed, Compiled, Composed, Packed, Transformed, called
from opcheck.core.policy import Contract
from opcheck.core.spec import OpSpec
from opcheck.run.comparison import Announce, Comparison
from opcheck.run.composition.captured import captured
from opcheck.run.composition.checkpointed import checkpointed, packed
from opcheck.run.composition.compiled import compiled
from opcheck.run.composition.transformed import transformed

__all__ = ["composed"]


def composed(
    spec: OpSpec, contract: Contract, case: Case, device: torch.device, trial: Composed, announce: Announce
) -> Behaviour:
    """Run one trial of composition.

    Raises:
        RoleFailed: The ordinary run, or an oracle, raised.
        SampleError, BadCase: The case does not fit the op.
    """
    comparison = Comparison(spec, contract, case, device, called(trial), announce)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        match trial:
            case Compiled():
                return compiled(comparison, trial.backend)
            case Checkpointed():
                return checkpointed(comparison, reentrant=trial.reentrant)
            case Packed():
                return packed(comparison)
            case Transformed():
                return transformed(comparison)
            case Captured():
                return captured(comparison)
            case _:
                assert_never(trial)
