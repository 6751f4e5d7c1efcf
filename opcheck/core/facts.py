"""What a run of an op shows about it that no contract says: its tensors, and the kernels that it launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

InputKind = Literal["float", "integer", "boolean", "offsets", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A tensor argument of a sample.

    Attributes:
        kind: How it was drawn; `"other"` where no builder drew it.
        rank: Number of its dimensions.
        dims: The dimension names that it was drawn with.
        floating: Whether its element type is a floating-point one, so that it may require a gradient.
    """

    kind: InputKind
    rank: int
    dims: tuple[str, ...] = ()
    floating: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A tensor that the reference returns, or an argument that it writes into."""

    rank: int
    differentiable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch of a Triton kernel.

    Attributes:
        kernel: `module.qualname` of the kernel.
        place: `file:line` of its definition.
        dims: Sizes of the case under which it was launched.
        grid: Number of programs along x, y, z.
        constants: The integers among its `tl.constexpr` arguments, autotuned ones included.
        warps: `num_warps`, 0 where the launch does not say.
        config: Index of the autotuner's configuration, -1 where the kernel is not autotuned.
    """

    kernel: str
    place: str
    dims: Mapping[str, int]
    grid: tuple[int, int, int]
    constants: Mapping[str, int] = field(default_factory=dict)
    warps: int = 0
    config: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the describing worker found out about an op; empty where it could not be run.

    Attributes:
        inputs: Tensor arguments of a sample, by name.
        outputs: What the reference returns, by its name in reports: `"out"`, `"out 1"`.
        launches: Each launch of forward and backward at the shapes that were tried.
        configs: Number of configurations of each autotuned kernel.
        no_far: Why no case has offsets of more than 2^31 elements here; empty where they can be had.
    """

    inputs: Mapping[str, Input] = field(default_factory=dict)
    outputs: Mapping[str, Output] = field(default_factory=dict)
    launches: tuple[Launch, ...] = ()
    configs: Mapping[str, int] = field(default_factory=dict)
    no_far: str = ""


def facts_from(data: Mapping[str, Any]) -> Facts:
    """Read facts back from JSON; the inverse of `opcheck.core.report.to_json`."""
    launches = (Launch(**{**item, "grid": tuple(item["grid"])}) for item in data.get("launches", ()))
    inputs = {name: Input(**{**item, "dims": tuple(item["dims"])}) for name, item in data.get("inputs", {}).items()}
    return Facts(
        inputs=inputs,
        outputs={name: Output(**item) for name, item in data.get("outputs", {}).items()},
        launches=tuple(launches),
        configs=dict(data.get("configs", {})),
        no_far=data.get("no_far", ""),
    )
