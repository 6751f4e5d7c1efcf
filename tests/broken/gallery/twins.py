"""What every mechanism of the gallery shares: declaring both twins, and the parts that are never the fault."""

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from opcheck import Case, Sample


def twins(declare: Callable[[str, bool], None]) -> Callable[[str, bool], None]:
    """Declare `right::name` and `broken::name`: `declare` takes the namespace and whether the fault is in."""
    declare("right", False)
    declare("broken", True)
    return declare


def draw_x(case: Case) -> Sample:
    """Draw x `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"))


def fresh(x: torch.Tensor) -> torch.Tensor:
    """Allocate a contiguous tensor of x's shape and dtype; as a fake it says the same."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def fresh_rows(x: torch.Tensor) -> torch.Tensor:
    """Allocate `[rows]` for x `[rows, cols]`, in x's dtype."""
    return x.new_empty(x.shape[0])


def row_shape(x: torch.Tensor) -> tuple[int, int]:
    """Return rows and cols of x `[rows, cols]`.

    Raises:
        ValueError: Its rows are empty.
    """
    rows, cols = x.shape
    if not cols:
        raise ValueError("a row should have at least one element")
    return rows, cols


def refuse_empty(*sizes: int) -> None:
    """Raise ValueError where a size is 0 for which an op has no answer."""
    if 0 in sizes:
        raise ValueError("it is empty")


def save_inputs(ctx, inputs, output):
    """Keep all inputs for the backward."""
    ctx.save_for_backward(*inputs)


def cumulative(x: torch.Tensor) -> torch.Tensor:
    """Compute the cumulative sums of the rows of x `[rows, cols]` by doubling, in x's dtype.

    On the CPU torch.cumsum adds up float32 in float64, which no float32 kernel can be held to.
    """
    step = 1
    while step < x.shape[1]:
        x = x + torch.nn.functional.pad(x[:, :-step], (step, 0))
        step *= 2
    return x.clone()


def save_shape(ctx, inputs, output):
    """Keep the shape of the first input for the backward."""
    ctx.shape = inputs[0].shape


@triton.jit
def _scale_kernel(x_ptr, y_ptr, factor, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, x * factor, mask=at < count)


def scaled(x: torch.Tensor, factor: float, out: torch.Tensor | None = None) -> torch.Tensor:
    """Compute `factor * x` for x `[*S]` in float32, rounded once to the element type of `out` (x's unless given)."""
    y = fresh(x) if out is None else out
    _scale_kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), y, factor, x.numel(), BLOCK=1024)
    return y
