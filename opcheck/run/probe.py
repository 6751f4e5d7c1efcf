"""Read from an op's launches which kernels it has, at which sizes of grid and block, and how they are tuned."""

from __future__ import annotations

import torch

from opcheck.backends.configs import only_config
from opcheck.backends.launches import Recording, recorded
from opcheck.core.case import Case, Dims
from opcheck.core.facts import Launch
from opcheck.core.policy import Contract
from opcheck.core.shapes import odd
from opcheck.core.spec import OpSpec
from opcheck.core.tiles import probe_shapes
from opcheck.errors import OpcheckError
from opcheck.run.failure import place_of
from opcheck.run.roles import RoleFailed, run_role

MOST_CONFIGS = 32


def launches_of(spec: OpSpec, contract: Contract, device: torch.device) -> tuple[tuple[Launch, ...], dict[str, int]]:
    """Return the launches of forward and backward at several shapes, and the configurations of autotuned kernels.

    Only the host's code runs, the kernels do not: that costs next to nothing even at shapes which an interpreter would
    take minutes for. A shape at which the target raises has no launches.
    """
    launches: list[Launch] = []
    configs: dict[str, int] = {}
    for dims in probe_shapes(contract):
        recording = _probe(spec, contract, device, dims, config=0)
        launches += _launches(recording, dims, config=0)
        configs = {name: max(count, configs.get(name, 0)) for name, count in {**configs, **recording.configs}.items()}
    for config in range(1, min(max(configs.values(), default=0), MOST_CONFIGS)):
        recording = _probe(spec, contract, device, odd(contract), config=config)
        launches += _launches(recording, odd(contract), config=config)
    return tuple(launches), configs


def _probe(spec: OpSpec, contract: Contract, device: torch.device, dims: Dims, *, config: int) -> Recording:
    case = Case(op=spec.name, dtype=contract.dtypes[0], dims=dims, backend=device.type)
    found, raised = launched(spec, case, device, config=config)
    return Recording() if raised else found


def launched(spec: OpSpec, case: Case, device: torch.device, *, config: int) -> tuple[Recording, str]:
    """Return what a case launches, forward and backward, and what the target raised meanwhile, empty where nothing."""
    with only_config(config), recorded(run=False) as found:
        try:
            run_role(spec, case, "target", device)
        except (RoleFailed, OpcheckError) as error:
            return found, str(error)
    return found, ""


def _launches(recording: Recording, dims: Dims, *, config: int) -> list[Launch]:
    return [
        Launch(
            kernel=item.kernel, place=place_of(item.function), dims=dict(dims), grid=item.grid,
            constants=dict(item.constants), warps=item.warps, config=config if item.tuned else -1,
        )
        for item in recording.launches
        if item.tuned or config == 0
    ]  # fmt: skip
