"""The form of a tensor, all but its values: what a fake says and what the op gives."""

from __future__ import annotations

from dataclasses import dataclass

from opcheck.core.measured import Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Shape, strides in elements, element type and kind of device of a tensor of a run."""

    tensor: str
    shape: Index
    strides: Index
    dtype: str
    device: str

    @property
    def significant_strides(self) -> Index:
        """The strides that say where an element is: those of dimensions with more than one index."""
        if 0 in self.shape:
            return ()
        return tuple(stride for size, stride in zip(self.shape, self.strides, strict=True) if size > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeRun:
    """Run the target forward and backward on fake tensors; symbolic: forward only, with sizes that are not known."""

    symbolic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Faked:
    """Answer to `FakeRun`.

    Attributes:
        forms: Outputs and gradients as the fakes give them; empty for a symbolic run.
        fixed: Dimensions that the fake turned into numbers in a symbolic run, as `cols = 129`.
        sizes: How many sizes were symbolic.
    """

    forms: tuple[Form, ...] = ()
    fixed: tuple[str, ...] = ()
    sizes: int = 0
