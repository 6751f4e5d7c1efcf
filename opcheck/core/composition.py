"""Trials with an op inside of what users put around it: compilers, checkpointing, hooks, transforms, CUDA graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

COMPOSITION = "composition"  # the check
Compiler = Literal["aot_eager", "inductor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """Run the op in a function that `torch.compile` compiles, then on other values and sizes."""

    backend: Compiler


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointed:
    """Run the op under activation checkpointing, so that its forward runs once more in the backward."""

    reentrant: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Run the op with what autograd saves moved away and brought back as contiguous copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformed:
    """Run the op under the transforms of `torch.func`: a vector-Jacobian product and a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """Capture forward and backward in a CUDA graph and replay it on other values."""


Composed = Compiled | Checkpointed | Packed | Transformed | Captured


def called(trial: Composed) -> str:
    """Name a trial as it stands in findings and announcements."""
    match trial:
        case Compiled():
            return f"torch.compile ({trial.backend})"
        case Checkpointed():
            return f"checkpointing (use_reentrant={trial.reentrant})"
        case Packed():
            return "saved tensors on the CPU"
        case Transformed():
            return "torch.func"
        case Captured():
            return "a CUDA graph"
