"""Write a failure's script, by the simplest means that shows it, and see it fail in a process of its own."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from opcheck.core.behaviour import REFUSAL
from opcheck.core.case import Case
from opcheck.core.finding import Finding
from opcheck.core.report import to_json
from opcheck.core.variants import config_of
from opcheck.repro.captured import Captured, captured_from
from opcheck.repro.script import STARTUP, About, standalone, through_opcheck
from opcheck.repro.shrinking import needed
from opcheck.run.isolate import Death
from opcheck.session import Session

#: Checks whose law a few lines of torch can see broken.
STANDALONE = frozenset({"structure", "numerics", "slices", "ulp", "bias", REFUSAL})
#: Why the others need opcheck.
_WHY = {
    "memory": "only its observer sees what a kernel reads and writes",
    "determinism": "on the interpreter it runs the programs in other orders, and poisons what is allocated",
}
_GENERAL = "this law is about more than the values of one run"
_IGNORE = "*\n"  # what .opcheck/.gitignore says: nothing in it belongs to the project


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A script on disk.

    Attributes:
        alone: Whether it runs without opcheck, but for the user's import of it.
        shows: Whether it was seen to exit with 1.
        said: What it printed.
    """

    file: Path
    alone: bool
    shows: bool
    said: str


def folder_for(session: Session, wanted: Path | None) -> Path:
    """Return the folder for scripts, made where it is missing: `.opcheck/repro` beside the registry unless given.

    Raises:
        OSError: It cannot be made.
    """
    if wanted is not None:
        wanted.mkdir(parents=True, exist_ok=True)
        return wanted.resolve()
    kept = Path(session.payload["root"]).resolve() / ".opcheck"
    folder = kept / "repro"
    folder.mkdir(parents=True, exist_ok=True)
    (kept / ".gitignore").write_text(_IGNORE)
    return folder


def about(session: Session, case: Case, original: Case, finding: Finding, *, bisect: bool) -> About:
    """Return what a script says of itself."""
    environment = session.registry.environment
    return About(
        case=case,
        original=original,
        finding=finding,
        registry=Path(session.policy.path).resolve(),
        fatal=_fatal(finding),
        bisect=bisect,
        timeout=session.options.timeout,
        level=session.options.level,
        environment=f"{environment['device']}, torch {environment['torch']}, Triton {environment['triton']}",
    )


def write(session: Session, about: About, folder: Path) -> Written:
    """Write the script of a failure; one that does not show it alone goes through opcheck instead.

    Raises:
        OSError: The folder cannot be written to.
    """
    file = folder / f"{_stem(about)}.py"
    why = _WHY.get(about.finding.check, _GENERAL)
    if about.finding.check in STANDALONE and config_of(about.case.variant) is None:
        found = _capture(session, about, file)
        if isinstance(found, Captured):
            repaired, reason = _repair(session, about, file, found)
            text = standalone(found, about, file, repaired=repaired, why=reason)
            written = _try(file, text, about, alone=True)
            if written.shows:
                return written
            said = (written.said.splitlines() or ["it said nothing"])[-1]
            why = f"a plain call in a fresh process does not show it ({said})"
        else:
            why = found
    elif about.finding.check in STANDALONE:
        why = "it runs the autotuned kernels in one configuration"
    file.with_suffix(".safetensors").unlink(missing_ok=True)
    return _try(file, through_opcheck(about, file, needed(about.finding.check), why), about, alone=False)


def _stem(about: About) -> str:
    readable = re.sub(r"\W+", "_", f"{about.case.op} {about.finding.check} {about.finding.tensor}").strip("_")
    return f"{readable}_{hashlib.blake2b(about.case.id.encode(), digest_size=3).hexdigest()}"


def _fatal(finding: Finding) -> bool:
    """Say whether a failure ends the process or hangs it."""
    return (
        finding.tensor == "the case"
        and finding.check in ("structure", REFUSAL)
        and not (" raised " in finding.detail or "returned" in finding.detail)
    )


def _item(session: Session, about: About, file: Path) -> dict[str, object]:
    return {
        "case": about.case.id, "check": about.finding.check, "tensor": about.finding.tensor, "fatal": about.fatal,
        "numbers": to_json(about.finding.numbers), "data": str(file.with_suffix(".safetensors")), "skip": session.skip,
    }  # fmt: skip


def _capture(session: Session, about: About, file: Path) -> Captured | str:
    """Have a worker take the case apart, or say why it cannot."""
    answer = session.pool.run_once(_item(session, about, file), entry="opcheck.repro.capture:serve")
    if isinstance(answer, Death):
        return f"taking the case apart {answer.reason}"
    (body,) = answer
    return captured_from(body["captured"]) if "captured" in body else str(body["not"])


def _repair(session: Session, about: About, file: Path, found: Captured) -> tuple[bool, str]:
    """Say whether the script needs the repaired interpreter, and why."""
    if about.case.backend != "cpu":
        return False, ""
    if found.narrow:
        return True, (
            "Triton's own interpreter computes nonsense in bfloat16 and float8, so the script has opcheck repair it."
        )
    if about.fatal:
        return True, "It runs on opcheck's repaired interpreter, as the audit did."
    answer = session.pool.run_once(_item(session, about, file), entry="opcheck.repro.capture:serve_plain")
    if not isinstance(answer, Death) and answer[0]["mark"] == found.mark:
        return (
            False,
            "Triton's own interpreter gives the same bits here as opcheck's repaired one, so that is not used.",
        )
    return True, "Triton's own interpreter gives something else here, so the script has opcheck repair it."


def _try(file: Path, text: str, about: About, *, alone: bool) -> Written:
    """Write a script and run it as its reader will."""
    file.write_text(text, encoding="utf-8")
    try:
        limit = about.timeout + 2 * STARTUP
        command = [sys.executable, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return Written(file=file, alone=alone, shows=False, said="it did not end")
    said = (done.stdout + done.stderr).strip()
    return Written(file=file, alone=alone, shows=done.returncode == 1, said=said)
