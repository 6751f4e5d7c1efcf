"""Use an op often, in changing shapes, and beside other work."""

from __future__ import annotations

import warnings
from typing import assert_never

import torch

from opcheck.core.case import Case
from opcheck.core.policy import Contract
from opcheck.core.spec import OpSpec
from opcheck.core.stress import Endure, Endured, Large, Reshape, SecondDevice, Streams, Stressed, label_of
from opcheck.run.comparison import Announce, Comparison
from opcheck.run.stress.devices import on_second_device, on_streams
from opcheck.run.stress.endured import endured
from opcheck.run.stress.large import large
from opcheck.run.stress.reshaped import reshaped

__all__ = ["stressed"]


def stressed(
    spec: OpSpec, contract: Contract, case: Case, device: torch.device, trial: Stressed, announce: Announce
) -> Endured:
    """Run one trial of stress.

    Raises:
        RoleFailed: The ordinary run, or an oracle, raised.
        SampleError, BadCase: The case does not fit the op.
    """
    comparison = Comparison(spec, contract, case, device, label_of(trial), announce)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        match trial:
            case Endure():
                return endured(comparison, steps=trial.steps, calls=trial.calls)
            case Reshape():
                return reshaped(comparison, trial.shapes)
            case Streams():
                return Endured(behaviour=on_streams(comparison))
            case SecondDevice():
                return Endured(behaviour=on_second_device(comparison))
            case Large():
                return Endured(behaviour=large(comparison, trial.share))
            case _:
                assert_never(trial)
