"""An evidence file and the reports beside it: read whole, written line by line, shared by audits at once."""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import replace
from pathlib import Path

from opcheck.core.brief import brief
from opcheck.core.evidence import Described, Evidence, Line, from_text, merge, to_text
from opcheck.core.report import OpReport, op_from, to_json
from opcheck.errors import OpcheckError

FOLDER = ".opcheck"
_BRIEF = ".brief"
_PATIENCE = 30.0  # seconds for another audit to have written its line


def default_file(root: Path, backend: str, level: str) -> Path:
    """Return the evidence file of a registry's folder."""
    return root / FOLDER / "evidence" / f"{backend}-{level}.jsonl"


class Store:
    """The evidence of one file.

    Nothing that goes wrong with it stops an audit: what could not be read or written is told by `problem`, once.

    Args:
        file: The file, which need not exist.
        named: Whether the user named it. Then it is never put aside.

    Attributes:
        lines: What was read, and what was put since.
        kept: Whether lines that are put are written.
        problem: Why evidence is not kept, or where an unreadable file went; empty where all is well.

    Raises:
        OpcheckError: The user named a file that is no evidence.
    """

    def __init__(self, file: Path, *, named: bool = False) -> None:
        self.file, self._named = file, named
        self.problem, self.kept = "", True
        self.lines: tuple[Line, ...] = ()
        try:
            self.lines = self._read()
        except ValueError as error:
            self._put_aside(error)

    def evidence(self, op: str, backend: str, level: str) -> tuple[Evidence, ...]:
        """Return the whole lines of an op, the newest first."""
        found = [line for line in self.lines if isinstance(line, Evidence) and line.whole
                 and (line.op, line.backend, line.level) == (op, backend, level)]  # fmt: skip
        return tuple(sorted(found, key=lambda line: line.finished, reverse=True))

    def described(self, backend: str) -> tuple[Described, ...]:
        """Return what the registry held when it was last imported for a backend, the newest first."""
        found = [line for line in self.lines if isinstance(line, Described) and line.backend == backend]
        return tuple(sorted(found, key=lambda line: line.finished, reverse=True))

    def report(self, line: Evidence, *, whole: bool = True) -> OpReport | None:
        """Return the report that a line stands for, None where it is not there; `whole`, or as much as is printed."""
        name = line.details if whole else f"{line.details}{_BRIEF}"
        try:
            return op_from(json.loads((self.file.parent / name).read_bytes())) if line.details else None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def put(self, line: Line, report: OpReport | None = None) -> None:
        """Add a line in place of an older one, with the op's report beside it."""
        if not self.kept:
            return
        try:
            self._put(line, report)
        except (OSError, ValueError, NotImplementedError) as error:  # the last where files cannot be locked
            self.kept = False
            why = f"cannot write {self.file}: {error.strerror or error}" if isinstance(error, OSError) else str(error)
            self.problem = f"{why}; the audit goes on, and the next one starts from what was kept before"

    def _put(self, line: Line, report: OpReport | None) -> None:
        from filelock import FileLock

        self._make_folder()
        with FileLock(f"{self.file}.lock", timeout=_PATIENCE):
            if report is not None and isinstance(line, Evidence):
                line = replace(line, details=self._details(line))
                self._write_report(line.details, report)
            before = self._read()
            self.lines = merge(before, (line,))
            self._write(self.file, to_text(self.lines))
            self._sweep(before)

    def _read(self) -> tuple[Line, ...]:
        try:
            text = self.file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ()
        except OSError as error:
            if self._named:
                raise OpcheckError(f"cannot read {self.file}: {error.strerror}") from None
            self.kept, self.problem = False, f"cannot read {self.file}: {error.strerror}; the audit goes on without it"
            return ()
        except UnicodeDecodeError:
            raise ValueError(f"{self.file} is not UTF-8") from None
        return from_text(text, str(self.file))

    def _put_aside(self, error: ValueError) -> None:
        """Make room for a new file where ours cannot be read; another's stays where it is."""
        if self._named:
            raise OpcheckError(f"--evidence: {error}; delete it, or name another file") from None
        aside = self.file.with_suffix(".unreadable")
        try:
            os.replace(self.file, aside)
        except OSError:
            self.kept, self.problem = False, f"{error}; delete it: until then no evidence is kept"
        else:
            self.problem = f"{error}; it is now {aside.name}, to be deleted, and a new one is begun"

    def _make_folder(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        home = next((folder for folder in self.file.parents if folder.name == FOLDER), None)
        if home is not None and not (home / ".gitignore").exists():
            (home / ".gitignore").write_text("# Written by opcheck.\n*\n", encoding="utf-8")

    def _details(self, line: Evidence) -> str:
        """Return where a report lies; the key is part of the name, so that no line ever names another's report."""
        machine = "-".join(filter(None, (line.backend, line.capability, line.level)))
        name = re.sub(r"[^\w.]+", "-", line.op)
        return f"{self.file.stem}-details/{machine}/{name}-{line.key[:12]}.json"

    def _write_report(self, name: str, report: OpReport) -> None:
        place = self.file.parent / name
        place.parent.mkdir(parents=True, exist_ok=True)
        self._write(place, _text(report))
        self._write(place.with_name(f"{place.name}{_BRIEF}"), _text(brief(report)))

    def _write(self, file: Path, text: str) -> None:
        """Write a file so that a reader sees the old or the new one, and never a part."""
        fresh = file.with_name(f"{file.name}.{os.getpid()}.tmp")
        try:
            fresh.write_text(text, encoding="utf-8")
            os.replace(fresh, file)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise

    def _sweep(self, before: tuple[Line, ...]) -> None:
        """Delete the reports that no line names any more."""
        named = {line.details for line in self.lines if isinstance(line, Evidence)}
        gone = {line.details for line in before if isinstance(line, Evidence) and line.details} - named
        for name in gone:
            for place in (self.file.parent / name, self.file.parent / f"{name}{_BRIEF}"):
                if self.file.parent in place.resolve().parents:
                    with contextlib.suppress(OSError):
                        place.unlink()


def _text(report: OpReport) -> str:
    return json.dumps(to_json(report), sort_keys=True, allow_nan=False, separators=(",", ":"))
