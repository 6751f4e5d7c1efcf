"""Look closer at a tensor that is too far from golden: where it is wrong, and whether an argument is ignored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from opcheck.core.case import Case
from opcheck.core.depicting import Trio, pictures_of
from opcheck.core.diagnosis import Scene, told
from opcheck.core.diagnosis.programs import programs
from opcheck.core.floats import upcast_exact
from opcheck.core.formats import FORMATS
from opcheck.core.measure import digest_of, dtype_name
from opcheck.core.outcome import Locate, Located, Role
from opcheck.core.pattern import locate
from opcheck.core.variants import changed_variant, variant_text, variant_values
from opcheck.run.axes import axis_names
from opcheck.run.diagnosing import Diagnosing, known_tiles, launches
from opcheck.run.poison import poisoned
from opcheck.run.roles import Run

RunRole = Callable[[Case, str, Role], Run]


def located(run: RunRole, case: Case, trial: Locate, diagnosing: Diagnosing) -> Located:
    """Run the three roles again, describe the wrong elements of the trial's tensor and say what they look like.

    Args:
        run: Runs a role on a case under a label for progress.
        case: Where the tensor failed.
        trial: Which tensor, and how far from golden it may be.
        diagnosing: Looks for what the wrong elements look like.
    """
    golden, reference = (run(case, "locate", role) for role in ("golden", "reference"))
    with poisoned(), launches() as launch_of:  # what is never written shows as NaN, whatever the memory held before
        target = run(case, "locate", "target")
    found = [item.tensors[trial.tensor] for item in (target, reference, golden) if trial.tensor in item.tensors]
    if len(found) < 3 or found[0].shape != found[2].shape:
        return Located(wrong=0, total=0, where="it has another form when run again")
    t, f, g = (upcast_exact(item) for item in found)
    wrong = g.isfinite() & f.isfinite() & ~((t - g).abs() <= trial.threshold)
    axes = axis_names(trial.tensor, tuple(t.shape), golden)
    answer = locate(wrong, t, g, axes=axes)
    if not answer.wrong:
        return answer
    launch = launch_of(found[0])
    dtype, tiles = dtype_name(found[0].dtype), known_tiles(diagnosing.contract, launch, axes, tuple(t.shape))
    trio = Trio(tensor=trial.tensor, target=t, reference=f, golden=g, dtype=dtype, axes=axes, tiles=tiles)
    answer = replace(answer, pictures=pictures_of(trio, trial.threshold, "the threshold"))
    if launch and (who := programs(launch, wrong)):
        answer = replace(answer, where=f"{answer.where}, by {who}")
    if ignored := _ignored(run, case, trial, found[0], g):
        return replace(answer, looks_like=ignored)
    if dtype not in FORMATS:
        return answer
    scene = Scene(
        tensor=trial.tensor, target=t, reference=f, golden=g, wrong=wrong, dtype=dtype, axes=axes, dims=case.dims,
        tiles=tiles,
    )  # fmt: skip
    hypotheses = diagnosing.found(case, scene, golden, trial.threshold)
    return replace(answer, looks_like=told(answer.looks_like, hypotheses))


def _ignored(run: RunRole, case: Case, trial: Locate, target: Tensor, golden: Tensor) -> str:
    """Name the argument of the case's variant without which the target gives the same bits and golden does not."""
    for name, value in variant_values(case.variant).items():
        without = replace(case, variant=changed_variant(case.variant, without={name}))
        other = run(without, "locate", "golden").tensors.get(trial.tensor)
        if other is None or other.shape != golden.shape:
            continue
        if not bool(((upcast_exact(other) - golden).abs() > trial.threshold).any()):
            continue
        with poisoned():
            again = run(without, "locate", "target").tensors.get(trial.tensor)
        if again is not None and digest_of(again) == digest_of(target):
            return f"{variant_text({name: value})} changes golden and nothing in the target: the argument is not used"
    return ""
