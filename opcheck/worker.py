"""The child's side: import the registry, then describe it or audit slices of an op's cases."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from opcheck.core.case import Case
from opcheck.core.outcome import Role
from opcheck.core.report import CaseReport
from opcheck.core.unjudged import broke, out_of_memory, spoilt
from opcheck.run.project import Project
from opcheck.run.watching import Watch

# Imported by the fork server before it forks; none of these runs a tensor operation or a CUDA call.
PRELOAD = (
    "torch", "triton", "triton.language", "torch._dynamo", "torch._functorch.aot_autograd",
    "torch.testing._internal.optests", "torch.nn.attention", "opcheck.auditor", "opcheck.run.execute",
    "opcheck.registry", "opcheck.declared",
)  # fmt: skip


def serve(channel: Any, payload: Mapping[str, Any]) -> None:
    """Answer items until told to stop.

    An item `{"describe": true}` is answered by what the registry holds, `{"facts": op}` by what one run of an op
    shows, and one with cases by one report per case; or, where the item is not `alone` with the device, by
    `{"short": case}` for a case that memory ran short in.
    """
    prepare(payload["backend"])
    watch = _watching(payload)
    with _recording(payload) as recorder:
        for item in channel.items():
            if "describe" in item:
                _describe(channel, payload, item, watch)
            elif "facts" in item:
                _learn(channel, payload, item)
                _give_back(payload["backend"])
            else:
                _audit(channel, payload, item, recorder, watch)


def prepare(backend: str) -> None:
    """Set this process up for a backend: one thread, and on the CPU the faithful interpreter."""
    import torch
    import triton

    torch.set_num_threads(1)
    if backend == "cpu":
        from opcheck.backends import interpreter

        interpreter.install()
    if hasattr(triton, "knobs"):
        triton.knobs.compilation.front_end_debugging = True


@contextlib.contextmanager
def _recording(payload: Mapping[str, Any]) -> Iterator[Any]:
    """Record what kernels reach, where that is asked; gives the recorder, or None."""
    if not payload["coverage"] or _unrecorded():
        yield None
        return
    from opcheck.backends.interpreter.coverage import Recorder

    recorder = Recorder()
    with recorder.recording():
        yield recorder


def _unrecorded() -> str:
    """Say why this process cannot record what kernels reach, empty where it can."""
    from opcheck.backends.interpreter import install

    repair = install()
    return "" if repair.active else f"--coverage needs the repaired interpreter: {repair.reason}"


def _watching(payload: Mapping[str, Any]) -> Watch | None:
    """Watch what this process imports and reads of the project, where that is asked."""
    if not payload["watch"]:
        return None
    watch = Watch(Project(payload["root"]))
    watch.start()
    return watch


def _describe(channel: Any, payload: Mapping[str, Any], item: Mapping[str, Any], watch: Watch | None) -> None:
    import torch

    from opcheck.backends import interpreter
    from opcheck.core.policy import DTYPES
    from opcheck.declared import draft
    from opcheck.registry import registered
    from opcheck.run.environment import environment
    from opcheck.run.resting import resting
    from opcheck.run.targets import has_kernel

    backend = payload["backend"]
    if backend == "cuda" and not torch.cuda.is_available():
        channel.send({"no_device": "torch sees no CUDA device; use --backend cpu, or mend the driver"})
        return
    if payload["coverage"] and (why := _unrecorded()):
        channel.send({"no_coverage": why})
        return
    with watch.importing() if watch is not None else contextlib.nullcontext():
        failures = _import(payload, item["skip"], lambda name: channel.send({"importing": name}))
    ops = [
        {
            "name": spec.name,
            "place": str(spec.place),
            "schema": spec.schema,
            "promoted": spec.promoted,
            "mutated": list(spec.mutated),
            "registered": spec.op is not None,
            "not_covered": list(spec.not_covered),
            "kernel": spec.op is None or has_kernel(spec.op, backend),
            "tags": list(spec.tags),
            "arguments": [item.name for item in spec.arguments],
            "draft": draft(spec),
        }
        for spec in registered().values()
    ]
    refused = {dtype: why for dtype in DTYPES if backend == "cpu" and (why := interpreter.trusted(dtype))}
    found = {"ops": ops, "failures": failures, "refused": refused, "environment": environment(backend)}
    rests = None if watch is None else resting(registered(), payload["modules"], watch)
    channel.send({"registry": {**found, "kernels": _kernels(payload), "rests": rests}})


def _kernels(payload: Mapping[str, Any]) -> Any:
    """Return the functions of which it is recorded what is reached."""
    if not payload["coverage"]:
        return []
    from opcheck.backends.interpreter.coverage import inventory
    from opcheck.core.report import to_json

    return to_json(inventory(payload["modules"]))


def _learn(channel: Any, payload: Mapping[str, Any], item: Mapping[str, Any]) -> None:
    import torch

    from opcheck.checks import limits_by_check
    from opcheck.core.report import to_json
    from opcheck.declared import load_all
    from opcheck.errors import OpcheckError
    from opcheck.registry import spec
    from opcheck.run.facts import facts_of
    from opcheck.run.probe import launches_of
    from opcheck.run.roles import RoleFailed
    from opcheck.run.surroundings import kept

    _import(payload, item["skip"], lambda name: None)
    device = torch.device(payload["backend"])
    op = spec(item["facts"])
    contract = load_all(list(map(Path, payload["registries"])), limits_by_check()).ops[op.name]
    try:
        with kept():
            facts = facts_of(op, contract, device)
    except (RoleFailed, OpcheckError) as error:
        channel.send({"unlearnt": str(error)})
        return
    channel.send({"learnt": to_json(facts)})
    # Only now, so that a target which ends the process takes no more than its launches with it.
    with kept():
        launches, configs = launches_of(op, contract, device)
    channel.send({"learnt": to_json(replace(facts, launches=launches, configs=configs))})


def _audit(
    channel: Any, payload: Mapping[str, Any], item: Mapping[str, Any], recorder: Any, watch: Watch | None
) -> None:
    import torch

    from opcheck.auditor import audit_case
    from opcheck.checks import all_checks, limits_by_check
    from opcheck.checks.protocol import Subject
    from opcheck.core.report import to_json
    from opcheck.core.sanitizer import Sanitize
    from opcheck.declared import load_all
    from opcheck.registry import spec
    from opcheck.run.execute import Executor
    from opcheck.run.roles import unusable
    from opcheck.run.shortage import notice, watched
    from opcheck.run.surroundings import kept

    _import(payload, item["skip"], lambda name: None)
    policy = load_all(list(map(Path, payload["registries"])), limits_by_check())
    checks = {name: check for name, check in all_checks().items() if name in item["checks"]}
    op = spec(item["op"])
    contract = policy.ops[op.name]

    def announce(case: Case, label: str, role: Role) -> None:
        channel.send({"start": case.id, "label": label, "role": role})

    if watch is not None:
        watch.take()  # what the import of all ops reads is no matter of this one
    asked = payload["sanitize"]
    device = torch.device(payload["backend"])
    executor = Executor(op, contract, device, announce)
    for entry in item["cases"]:
        subject = Subject(
            contract=contract,
            case=Case.parse(entry["id"]),
            level=payload["level"],
            representative=entry["representative"],
            mutated=op.mutated,
            terms=op.terms is not None,
            registered=op.op is not None,
            fake=op.fake,
            sanitizers=tuple(Sanitize(tool=tool, seconds=asked["seconds"]) for tool in asked["tools"]),
        )
        if recorder is not None:
            recorder.clear()
        with watched(payload["backend"]) as memory:
            try:
                with kept():
                    report = audit_case(subject, checks, policy, executor)
            except Exception as error:
                notice(error)
                report = _unjudged(device, entry["id"], error)
        short = memory.short and not item["alone"]
        if recorder is not None:
            sources, ran = recorder.take()
            if not short:
                channel.send({"covered": {"sources": to_json(sources), "ran": to_json(ran)}})
        if watch is not None and (read := watch.take()):
            channel.send({"read": read})
        channel.send({"short": entry["id"]} if short else {"case": to_json(report)})
        if unusable(device):
            channel.send({"spoilt": True})
            os._exit(1)  # an orderly end would wait for the device
        _give_back(payload["backend"], all_of_it=memory.short or item["alone"])


def _unjudged(device: Any, case_id: str, error: Exception) -> CaseReport:
    """Report a case whose audit raised."""
    from opcheck.run.roles import unusable
    from opcheck.run.shortage import is_shortage

    if is_shortage(error):
        return out_of_memory(case_id, error)
    return spoilt(case_id, error) if unusable(device) else broke(case_id, error)


def _give_back(backend: str, *, all_of_it: bool = False) -> None:
    """Empty torch's cache: workers share one device, and what a large case leaves in one's is missing in another's.

    Args:
        all_of_it: Whether to look first for tensors that only cycles hold, as the frames of an exception may be.
    """
    if backend != "cuda":
        return
    import torch

    if all_of_it:
        gc.collect()
    with contextlib.suppress(RuntimeError):  # a device that answers no more takes nothing back
        torch.cuda.empty_cache()


def _import(payload: Mapping[str, Any], skip: list[str], announce: Any) -> dict[str, str]:
    from opcheck.run.modules import import_modules, put_on_path

    put_on_path(payload["root"])
    return import_modules(payload["modules"], skip=skip, announce=announce)
