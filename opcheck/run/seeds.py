"""Seed whatever an op may draw its random numbers from: torch's generators, and its own arguments named `seed`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from opcheck.core.case import Case, Sample
from opcheck.core.spec import OpSpec
from opcheck.core.variants import changed_variant, variant_values
from opcheck.run.inputs import parameter_names

FIRST = 20_240_229  # torch's generators are seeded with it and the numbers after it
SUFFIX = "seed"  # the end of the names of arguments that are taken for seeds


@contextlib.contextmanager
def generators_kept(device: torch.device) -> Iterator[None]:
    """Put back the states of the CPU's and the device's generators."""
    before = torch.get_rng_state()
    beside = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    try:
        yield
    finally:
        torch.set_rng_state(before)
        if beside is not None:
            torch.cuda.set_rng_state(beside, device)


def seeded(step: int) -> None:
    """Seed torch's generators, the CPU's and every GPU's, for one of several runs."""
    torch.manual_seed(FIRST + step)


def reseeded(spec: OpSpec, case: Case, step: int) -> tuple[OpSpec, Case]:
    """Return op and case with `step` added to every integer that is passed as a seed, as a number or as a tensor.

    A seed is an argument whose name ends in `seed`; step 0 leaves them as they are.
    """
    if not step:
        return spec, case

    def samples(given: Case) -> Any:
        sample = spec.samples(given)
        if not isinstance(sample, Sample):
            return sample
        names = parameter_names(spec, len(sample.args))
        args = (_moved(name, value, step) for name, value in zip(names, sample.args, strict=True))
        return Sample(*args, **{name: _moved(name, value, step) for name, value in sample.kwargs.items()})

    moved = {name: _moved(name, value, step) for name, value in variant_values(case.variant).items()}
    return replace(spec, samples=samples), replace(case, variant=changed_variant(case.variant, moved))


def _moved(name: str, value: Any, step: int) -> Any:
    if not name.endswith(SUFFIX) or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value + step
    integral = isinstance(value, Tensor) and not value.dtype.is_floating_point and value.dtype is not torch.bool
    return value + step if integral else value
