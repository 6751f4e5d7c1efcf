"""An op that writes into its argument although its reference does not."""

import torch

import opcheck

from ._double import golden, reference, samples


@opcheck.register("bad::mutates_alone", reference=reference, golden=golden, samples=samples, mutates_args=["x"])
def mutates_alone(x: torch.Tensor) -> None:
    x.mul_(2)
