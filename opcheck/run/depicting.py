"""Run a failing case once more for its pictures: of what fails by another law than that of numerics."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from opcheck.core.case import Case
from opcheck.core.depicted import Depict, Depicted, Part
from opcheck.core.depicting import Trio, pictures_of
from opcheck.core.fibres import slice_floor, slice_scale
from opcheck.core.floats import FORMATS, ulp, upcast_exact
from opcheck.core.measure import dtype_name
from opcheck.core.outcome import Role
from opcheck.core.pictures import Picture
from opcheck.core.policy import Contract
from opcheck.run.axes import axis_names
from opcheck.run.diagnosing import known_tiles, launches
from opcheck.run.poison import poisoned
from opcheck.run.roles import Run

RunRole = Callable[[Case, str, Role], Run]


def depicted(run: RunRole, case: Case, trial: Depict, contract: Contract) -> Depicted:
    """Run the three roles and return the pictures of each part that has a tensor of golden's shape in all of them."""
    golden, reference = (run(case, "depict", role) for role in ("golden", "reference"))
    with poisoned(), launches() as launch_of:  # what is never written shows as NaN, whatever the memory held before
        target = run(case, "depict", "target")
    found: dict[Part, tuple[Picture, ...]] = {}
    for part in trial.parts:
        values = [item.tensors.get(part.tensor) for item in (target, reference, golden)]
        t, f, g = values
        if t is None or f is None or g is None or t.shape != g.shape or f.shape != g.shape or t.is_complex():
            continue
        axes = axis_names(part.tensor, tuple(t.shape), golden)
        trio = Trio(
            tensor=part.tensor, target=upcast_exact(t), reference=upcast_exact(f), golden=upcast_exact(g),
            dtype=dtype_name(t.dtype), axes=axes,
            tiles=known_tiles(contract, launch_of(t), axes, tuple(t.shape)),
        )  # fmt: skip
        found[part] = pictures_of(trio, *_unit(part, trio))
    return Depicted(pictures=found)


def _unit(part: Part, trio: Trio) -> tuple[Tensor | float, str]:
    """Return what the part's errors are counted in, a number or `[*S]`, and the same in words."""
    fmt = FORMATS.get(trio.dtype)
    if fmt is None:
        return 1.0, "one"
    if part.check in ("ulp", "bias"):
        return ulp(trio.golden, fmt), "an ulp of golden"
    finite = trio.golden.nan_to_num(0.0, 0.0, 0.0).abs()
    if part.check == "slices":
        scale = slice_scale(finite.amax(dim=part.axis, keepdim=True), float(finite.max()))
        return (scale * part.quotient + 2 * slice_floor(scale, fmt)).expand_as(finite), "what its slice allows"
    largest = float((trio.reference - trio.golden).abs().nan_to_num(0.0, 0.0, 0.0).max())
    return largest, "the reference's largest error"
