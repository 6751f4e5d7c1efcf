"""Run a case in a process of its own under a sanitizer of GPU code, and read what it reports."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from opcheck.core.case import Case
from opcheck.core.sanitizer import MEMORY_TOOLS, Report, Sanitize, Sanitized, read_assertions, read_log
from opcheck.core.spec import OpSpec
from opcheck.run.failure import short
from opcheck.run.shortage import overhear

EXECUTABLE = "compute-sanitizer"
#: For every tool. Backtraces of the host are of Python's own frames; a connection may take as long as `import torch`.
_COMMON = (
    "--target-processes", "application-only", "--show-backtrace", "no", "--strip-paths", "no", "--print-limit", "50",
    "--launch-timeout", "120", "--max-connections", "64",
)  # fmt: skip
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "memcheck": ("--padding", "4096", "--report-api-errors", "no", "--leak-check", "no"),
    "racecheck": ("--racecheck-report", "analysis"),
    "initcheck": (),
    "synccheck": (),
}
_LAST_WORDS = 300  # characters of what the process printed


def sanitized(spec: OpSpec, case: Case, trial: Sanitize) -> Sanitized:
    """Run a case of an op under a tool; what goes wrong with the tool or the process is the answer's `problem`."""
    with tempfile.TemporaryDirectory(prefix="opcheck-") as folder:
        if trial.tool in MEMORY_TOOLS:
            return _under_tool(spec, case, trial, Path(folder))
        if trial.tool == "fpsan":
            return _two_configs(spec, case, trial, Path(folder))
        answer, said, problem = _alone(spec, case, trial, Path(folder))
        reports = read_assertions(said)
        return _answer(trial.tool, answer, reports, len(reports), "" if reports else problem)


def _under_tool(spec: OpSpec, case: Case, trial: Sanitize, folder: Path) -> Sanitized:
    executable = shutil.which(EXECUTABLE)
    if executable is None:
        return Sanitized(tool=trial.tool, problem=f"{EXECUTABLE} is not on PATH")
    log = folder / "log"
    tool = (executable, "--tool", trial.tool, *_COMMON, *_OPTIONS[trial.tool], "--log-file", str(log), "--")
    answer, said, problem = _alone(spec, case, trial, folder, prefix=tool)
    text = log.read_text(errors="replace") if log.exists() else ""
    reports, errors, failed = read_log(text or said)
    reports = tuple(_readable(item) for item in reports)
    # A run that the tool ends by destroying the context is no problem of the run: it is what the tool reports.
    return _answer(trial.tool, answer, reports, errors, "" if reports else problem or failed)


def _two_configs(spec: OpSpec, case: Case, trial: Sanitize, folder: Path) -> Sanitized:
    """Compare the bits of two configurations under fpsan, whose arithmetic does not depend on the order of sums."""
    first, _, problem = _alone(spec, case, trial, folder, config=0)
    if problem or max(first.get("configs", {}).values(), default=0) < 2:
        note = "" if problem else "fpsan compares two configurations of an autotuned kernel, and the op has none"
        return Sanitized(tool=trial.tool, launches=first.get("launches", {}), problem=problem, note=note)
    second, _, problem = _alone(spec, case, trial, folder, config=1)
    reports = tuple(
        Report(kind=f"{name} differs in its bits between two configurations of one autotuned kernel")
        for name, digest in first["digests"].items()
        if second.get("digests", {}).get(name) != digest
    )
    return _answer(trial.tool, first, () if problem else reports, len(reports), problem)


def _answer(tool: str, answer: Mapping[str, Any], reports: Sequence[Report], errors: int, problem: str) -> Sanitized:
    raised = answer.get("raised", "")
    if raised and not reports and not problem:
        reports, errors = (Report(kind=raised),), 1
    return Sanitized(
        tool=tool, launches=answer.get("launches", {}), reports=tuple(reports), errors=errors, problem=problem
    )


def _alone(
    spec: OpSpec, case: Case, trial: Sanitize, folder: Path, *, prefix: Sequence[str] = (), config: int = 0
) -> tuple[dict[str, Any], str, str]:
    """Run `opcheck.alone`; return what it answered, what it printed, and why it did not come to an answer."""
    file = folder / f"answer{config}.json"
    command = [
        *prefix, sys.executable, "-m", "opcheck.alone", "--module", spec.module, "--case", case.id,
        "--answer", str(file), "--config", str(config), "--mode", "" if prefix else trial.tool,
    ]  # fmt: skip
    with open(folder / "said", "w+b") as said:
        process = subprocess.Popen(
            command, env=_environment(trial.tool), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip
        problem = ""
        try:
            status = process.wait(trial.seconds)
        except subprocess.TimeoutExpired:
            problem = f"no answer within {trial.seconds:g} s; --timeout gives it longer"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        text = said.read().decode(errors="replace")
    if file.exists():
        answer = json.loads(file.read_text())
        overhear(answer["raised"])
        return answer, text, problem
    overhear(text)
    words = " ".join(text.split())[-_LAST_WORDS:]
    return {}, text, problem or f"the process ended with status {status}" + (f", saying {words}" if words else "")


def _environment(tool: str) -> dict[str, str]:
    """Return the variables of the process: torch's cached blocks would hide what lies between two tensors."""
    path = os.pathsep.join(item for item in sys.path if item)
    found = {**os.environ, "PYTHONPATH": path, "TRITON_INTERPRET": "0"}
    if tool in MEMORY_TOOLS:
        return {**found, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    return {**found, "TRITON_INSTRUMENTATION_MODE": tool}


def _readable(item: Report) -> Report:
    file, colon, line = item.where.rpartition(":")
    return replace(item, where=f"{short(file)}:{line}") if colon else item
