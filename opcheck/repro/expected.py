"""What a tensor should be, element by element, and how far from it is allowed: the laws of the checks on values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from opcheck.core.bias import CLIP
from opcheck.core.fibres import slice_floor, slice_scale
from opcheck.core.floats import Format, format_of, round_to, ulp, upcast_exact
from opcheck.core.grid import has_grid, on_grid
from opcheck.core.policy import Contract, Existing
from opcheck.run.elements import Conditioned, allowance
from opcheck.run.measuring import QUANTIZE

FREE = math.inf  # allowed where an element is not judged
FINITE = torch.finfo(torch.float64).max  # allowed where any finite number will do
NEAR_OVERFLOW = 0.5  # of the largest value: from there on Inf and finite may both be right


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """`values` `[*S]`, float64 or the exact integers, and what is `allowed`: a number, or one an element `[*S]`.

    For `bias`, `step` `[*S]` is the ulp of each element, 0 where it does not count, and `limits` are the means away
    from zero and upwards that are allowed.
    """

    values: Tensor
    allowed: Tensor
    step: Tensor | None = None
    limits: tuple[float, float] = (0.0, 0.0)
    clip: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """One tensor of reference and golden `[*S]`, and what the checks said about it.

    `steady` is golden with its inexact steps moved, where the op quantizes.
    """

    reference: Tensor
    golden: Tensor
    contract: Contract
    numbers: Mapping[str, float]
    limits: Any
    void: bool
    steady: Tensor | None = None

    @property
    def format(self) -> Format:
        """The number format in which the target must answer."""
        return format_of(str(self.reference.dtype).removeprefix("torch."))

    @property
    def judged(self) -> Tensor:
        """Where golden, its rounding and the reference are finite, `[*S]`."""
        rounded = round_to(self.g, self.format)
        return self.g.isfinite() & rounded.isfinite() & upcast_exact(self.reference).isfinite()

    @property
    def gridded(self) -> bool:
        """Whether the tensor is a quantization of which golden is not rounded."""
        floating = self.golden.dtype.is_floating_point
        return self.contract.kind == QUANTIZE and floating and has_grid(self.reference.dtype)

    @property
    def g(self) -> Tensor:
        """Golden in float64 `[*S]`."""
        return upcast_exact(self.golden)


def expected(check: str, oracle: Oracle, conditions: Conditioned, tensor: str) -> Expected:
    """Return what a check on values expects of a tensor."""
    if oracle.gridded and check == "structure":
        return _grid(oracle)
    if not oracle.reference.dtype.is_floating_point:
        return Expected(values=oracle.golden.to(torch.int64), allowed=torch.tensor(0.0))
    if check == "structure":
        return _places(oracle)
    if check == "bias":
        return _mean(oracle)
    dtype = str(oracle.reference.dtype).removeprefix("torch.")
    allowed = {
        "numerics": lambda: _gate(oracle, oracle.contract.existing.get(dtype)),
        "slices": lambda: _slices(oracle),
        "ulp": lambda: _ulps(oracle, conditions.get(tensor)),
    }[check]()
    values = torch.where(oracle.g.isfinite(), oracle.g, torch.zeros_like(oracle.g))
    return Expected(values=values, allowed=_unless(oracle.judged, allowed))


def _unless(judged: Tensor, allowed: Tensor) -> Tensor:
    """Return `allowed`, a number or `[*S]`, where an element is judged; a number where all are."""
    if not allowed.dim() and bool(judged.all()):
        return allowed
    return torch.where(judged, allowed, torch.full_like(allowed, FREE))


def _gate(oracle: Oracle, existing: Existing | None) -> Tensor:
    if existing is not None:
        return existing.atol + existing.rtol * oracle.g.abs()
    return torch.tensor(oracle.numbers["threshold"], dtype=torch.float64)


def _slices(oracle: Oracle) -> Tensor:
    """Return what each fibre along the failing axis allows, as `[*S]`."""
    g = torch.where(oracle.judged, oracle.g.abs(), torch.zeros_like(oracle.g))
    axis = int(oracle.numbers["axis"])
    scale = slice_scale(g.amax(dim=axis, keepdim=True), float(g.max()))
    allowed = oracle.numbers["quotient"] * scale + 2 * slice_floor(scale, oracle.format)
    return allowed.expand_as(g)


def _ulps(oracle: Oracle, conditioned: tuple[Tensor, Tensor] | None) -> Tensor:
    fmt, most = oracle.format, oracle.limits.max_ulp
    g = oracle.g
    error = torch.where(oracle.judged, (upcast_exact(oracle.reference) - g).abs(), torch.zeros_like(g))
    condition = torch.zeros_like(g) if conditioned is None else conditioned[1]
    first, second = allowance(g.reshape(-1), error.reshape(-1), condition.reshape(-1), fmt, most)
    allowed = torch.maximum(first, second).reshape(g.shape)
    # A narrow type's reference may need more ulps than the limit: it is then held to those.
    return allowed if fmt.wide else torch.maximum(allowed, oracle.numbers["reference_max_ulp"] * ulp(g, fmt))


def _places(oracle: Oracle) -> Expected:
    """Expect NaN and Inf where the rounded golden has them, and any finite number elsewhere."""
    fmt, g = oracle.format, oracle.g
    rounded = round_to(g, fmt)
    over = rounded.isinf()
    policy = oracle.contract.overflow
    if policy == "saturate":
        rounded = torch.where(over, torch.zeros_like(g), rounded)
    elif policy == "nan" or not fmt.has_inf:
        rounded = torch.where(over, torch.full_like(g, math.nan), rounded)
    allowed = torch.full_like(g, FINITE)
    unsettled = (over & ~g.isinf()) | (~over & (g.abs() > NEAR_OVERFLOW * fmt.max))
    unsettled |= ~over & ~g.isnan() & ~upcast_exact(oracle.reference).isfinite()
    if oracle.void:
        unsettled |= g.isnan()
    return Expected(values=rounded, allowed=torch.where(unsettled, torch.full_like(g, FREE), allowed))


def _grid(oracle: Oracle) -> Expected:
    """Expect the nearest number of the grid, the reference's on a tie, and NaN where an 8-bit float is to have it."""
    dtype = oracle.reference.dtype
    g, steady = oracle.g, None if oracle.steady is None else upcast_exact(oracle.steady)
    found = on_grid(upcast_exact(oracle.reference), g, dtype, overflow=oracle.contract.overflow, steady=steady)
    if not dtype.is_floating_point:
        return Expected(values=found.values.nan_to_num(0.0), allowed=found.allowed)
    places = _places(oracle)
    asked = found.allowed.isfinite()
    return Expected(
        values=torch.where(asked, found.values, places.values),
        allowed=torch.where(asked, found.allowed, places.allowed),
    )


def _mean(oracle: Oracle) -> Expected:
    fmt, g = oracle.format, oracle.g
    kept = oracle.judged & (g != 0)
    nothing = torch.zeros_like(g)
    values = torch.where(kept, g if fmt.wide else round_to(g, fmt), nothing)
    most = oracle.limits.max_bias.of(fmt.name)
    return Expected(
        values=values,
        allowed=torch.tensor(0.0),
        step=torch.where(kept, ulp(g, fmt), nothing),
        limits=(most + abs(oracle.numbers["reference_outward"]), most + abs(oracle.numbers["reference_upward"])),
        clip=CLIP["wide"] if fmt.wide else CLIP["narrow"],
    )
