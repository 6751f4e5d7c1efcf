"""What a worker finds in the registry's modules, and under which variables workers run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opcheck.core.kernel_coverage import Source, source_from
from opcheck.errors import OpcheckError, WorkerError
from opcheck.run.failure import blame
from opcheck.run.isolate import Death, Died, Message, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """What a worker found in the registry's modules.

    Attributes:
        kernels: Every `@triton.jit` function in them, where it is recorded what is reached of those.
        rests: What each op and the registry itself rest on, where that is watched; see `opcheck.run.resting`.
    """

    ops: Mapping[str, Mapping[str, Any]]
    failures: Mapping[str, str]
    refused: Mapping[str, str]
    environment: Mapping[str, str]
    kernels: tuple[Source, ...] = ()
    rests: Mapping[str, Any] | None = None


def describe(pool: Pool, skip: list[str]) -> Registry:
    """Have a worker import the registry; a module that kills it is skipped and named."""
    killed: dict[str, str] = {}
    while True:
        importing = ""
        answer: Mapping[str, Any] | None = None
        death: Death | None = None
        for event in pool.run([{"describe": True, "skip": skip}]):
            match event:
                case Message(body={"importing": name}):
                    importing = name
                case Message(body={"no_device": sentence} | {"no_coverage": sentence}):
                    raise OpcheckError(sentence)
                case Message(body={"registry": found}):
                    answer = found
                case Died():
                    death = event.death
        if answer is not None:
            return Registry(
                ops={item["name"]: item for item in answer["ops"]},
                failures={**killed, **answer["failures"]},
                refused=answer["refused"],
                environment=answer["environment"],
                kernels=tuple(map(source_from, answer["kernels"])),
                rests=answer["rests"],
            )
        if not importing or importing in skip or death is None:
            raise WorkerError(f"the worker that describes the registry ended: {death.reason if death else 'no answer'}")
        skip.append(importing)
        killed[importing] = _killed(importing, death)


def _killed(module: str, death: Death) -> str:
    place, said = blame(death.log)
    at = f" at {place}" if place else ""
    words = f"; its last words: {' '.join(said.split())[-200:]}" if said.strip() else ""
    return f"importing {module} ended the process{at}: {death.reason}{words}"


def workers_environment(backend: str) -> dict[str, str]:
    """Return the variables under which the workers of a backend run; Triton reads its own when it is imported."""
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    if backend == "cpu":
        return {**threads, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    return {**threads, "TRITON_INTERPRET": "0"}
