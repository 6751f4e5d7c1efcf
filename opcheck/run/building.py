"""Build every kernel that an op launches, forward and backward, for GPUs that need not be here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from opcheck.backends import builds
from opcheck.backends.launches import Recording
from opcheck.core.building import BUILDING, Binary, Build, Built
from opcheck.core.case import Case
from opcheck.core.outcome import Role
from opcheck.core.policy import Contract
from opcheck.core.shapes import in_earnest
from opcheck.core.spec import OpSpec
from opcheck.core.variants import changed_variant
from opcheck.run.failure import short
from opcheck.run.probe import MOST_CONFIGS, launched

Announce = Callable[[Case, str, Role], None]


def built(
    spec: OpSpec, contract: Contract, case: Case, device: torch.device, trial: Build, announce: Announce
) -> Built:
    """Build what forward and backward launch, each kernel once for every way in which it is specialised."""
    if blind := builds.obstacle():
        return Built(blind=blind)
    missing = {target: why for target in trial.targets if (why := builds.unavailable(target))}
    offered: dict[str, int] = {}
    binaries: dict[Binary, None] = {}
    failure = ""
    for config, recording, raised in _recordings(spec, contract, case, device, trial):
        failure = failure or raised
        offered |= {name.rpartition(".")[2]: count for name, count in recording.configs.items()}
        turns: Counter[str] = Counter()
        for launch in recording.launches:
            turn, turns[launch.kernel] = turns[launch.kernel], turns[launch.kernel] + 1
            for target in (name for name in trial.targets if name not in missing):
                announce(case, f"{BUILDING}{launch.function.__name__} for {target}", "target")
                binaries[_readable(builds.build(launch, target, config=config, turn=turn))] = None
    if failure and not binaries:
        return Built(blind=f"its launches could not be seen: {failure}")
    if failure:
        missing["what is launched after a step that needs the kernels' results"] = failure
    return Built(binaries=tuple(binaries), offered=offered, missing=tuple(missing.items()))


def _recordings(
    spec: OpSpec, contract: Contract, case: Case, device: torch.device, trial: Build
) -> Iterator[tuple[int, Recording, str]]:
    """Yield what is launched in earnest: with each configuration, under each variant, and at the odd shape.

    Of the odd shape only kernels that are not launched in earnest are kept, unless every shape is asked for.
    """
    home = replace(case, dims=in_earnest(contract)) if case.dims else case
    known: set[str] = set()
    configs = config = 0
    while config == 0 or (trial.thorough and config < min(configs, MOST_CONFIGS)):
        recording, raised = launched(spec, home, device, config=config)
        configs = max((configs, *recording.configs.values()))
        known |= {launch.kernel for launch in recording.launches}
        yield config, recording, raised
        config += 1
    for variant in contract.variants if trial.thorough else ():
        changed = replace(home, variant=changed_variant(home.variant, variant))
        recording, raised = launched(spec, changed, device, config=0)
        known |= {launch.kernel for launch in recording.launches}
        yield 0, recording, raised
    recording, raised = launched(spec, case, device, config=0)
    if not trial.every_shape:
        recording.launches = [launch for launch in recording.launches if launch.kernel not in known]
    yield 0, recording, raised


def _readable(binary: Binary) -> Binary:
    """Name the kernels' files relative to where opcheck was called."""
    kind, at, place = binary.atomics.partition(" at ")
    return replace(
        binary, where=_short(binary.where), line=_short(binary.line), double=_short(binary.double),
        tf32=_short(binary.tf32), atomics=f"{kind}{at}{_short(place)}",
    )  # fmt: skip


def _short(where: str) -> str:
    file, colon, line = where.rpartition(":")
    return f"{short(file)}:{line}" if colon else where
