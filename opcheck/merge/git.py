"""Read base by git: which commit it is, its files, and which of them head has changed."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from opcheck.errors import OpcheckError

USUAL = ("origin/HEAD", "origin/main", "origin/master", "main", "master")  # what base is unless it is named
_SHALLOW = "this clone is shallow: fetch its history first, `git fetch --unshallow` (actions/checkout: fetch-depth: 0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A commit that head is compared with.

    Attributes:
        top: The root of the working tree; all paths are relative to it, with `/`.
        ref: What it was called.
        tip: The commit that `ref` names: the gate's policy is its own.
        fork: The commit where head left it: what head changed, it changed from there.
        behind: How many commits of base head does not contain.
        changed: Files that differ between `fork` and the working tree, gone ones among them.
        files: The files of `fork`.
    """

    top: Path
    ref: str
    tip: str
    fork: str
    behind: int = 0
    changed: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()

    @classmethod
    def open(cls, folder: Path, ref: str = "") -> Base:
        """Find base.

        Raises:
            OpcheckError: There is no repository, no such ref, or no common history.
        """
        shallow = _shallow(folder)
        top = Path(_lines(folder, "rev-parse", "--show-toplevel")[0])
        name, tip = _resolve(top, ref, shallow)
        fork = _lines(top, "merge-base", tip, "HEAD", fails=_unrelated(name, shallow))[0]
        behind = int(_lines(top, "rev-list", "--count", f"HEAD..{tip}")[0])
        return cls(
            top=top,
            ref=name,
            tip=tip,
            fork=fork,
            behind=behind,
            changed=frozenset(_names(top, "diff", "--name-only", "--no-renames", "-z", fork, "--")),
            files=frozenset(_names(top, "ls-tree", "-r", "--name-only", "-z", fork)),
        )

    def text(self, path: str, *, tip: bool = False) -> bytes | None:
        """Return a file of the fork (or of the tip), None where it has none there; what head left alone is on disk."""
        if not tip and path not in self.files:
            return None
        if not tip and path not in self.changed and (self.top / path).is_file():
            return (self.top / path).read_bytes()
        commit = self.tip if tip else self.fork
        done = _git(self.top, "show", f"{commit}:{path}")
        return done.stdout if done.returncode == 0 else None

    def moved(self, path: str) -> str:
        """Return the path that a file had in the fork: its own, or that of the only one of its name that is gone."""
        if path in self.files:
            return path
        name = path.rpartition("/")[2]
        gone = [item for item in sorted(self.files & self.changed) if item.rpartition("/")[2] == name]
        gone = [item for item in gone if not (self.top / item).exists()]
        if len(gone) > 1:
            raise OpcheckError(
                f"{self.ref} has no {path}, and head deletes {', '.join(gone)}: which of them moved cannot be told; "
                f"move one at a time"
            )
        return gone[0] if gone else ""

    def __str__(self) -> str:
        return f"{self.ref} ({self.fork[:7]})"


def described(folder: Path) -> str:
    """Return head in words: its commit, and whether the working tree has changes on top."""
    commit = _lines(folder, "rev-parse", "--short=7", "HEAD")[0]
    dirty = _names(folder, "status", "--porcelain", "-z", "--untracked-files=no")
    return f"{commit} with uncommitted changes" if dirty else commit


def _resolve(folder: Path, ref: str, shallow: bool) -> tuple[str, str]:
    """Return the name and the commit of base."""
    for name in (ref,) if ref else USUAL:
        done = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if done.returncode == 0:
            return name, done.stdout.decode().strip()
    hint = f"; {_SHALLOW}" if shallow else "; fetch it, or name another with --base"
    if not ref:
        raise OpcheckError(f"there is no {' and no '.join(USUAL)} to compare with; name base with --base REF")
    raise OpcheckError(f"--base {ref}: git knows no such commit{hint}")


def _shallow(folder: Path) -> bool:
    done = _git(folder, "rev-parse", "--is-shallow-repository")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        if "not a git repository" in said:
            raise OpcheckError(f"{folder} is not in a git repository; the gate compares with a commit of one")
        raise OpcheckError(f"git cannot read {folder}: {said}")
    if _git(folder, "rev-parse", "--verify", "--quiet", "HEAD").returncode:
        raise OpcheckError(f"the repository of {folder} has no commit yet; the gate compares with one")
    return done.stdout.strip() == b"true"


def _unrelated(ref: str, shallow: bool) -> str:
    return f"{ref} and HEAD have no commit in common; " + (_SHALLOW if shallow else "name another base with --base")


def _names(folder: Path, *arguments: str) -> list[str]:
    """Return what git lists, between zero bytes."""
    done = _git(folder, *arguments)
    if done.returncode:
        raise OpcheckError(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return [item.decode("utf-8", "surrogateescape") for item in done.stdout.split(b"\0") if item]


def _lines(folder: Path, *arguments: str, fails: str = "") -> list[str]:
    done = _git(folder, *arguments)
    if done.returncode:
        raise OpcheckError(fails or f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode().splitlines()


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = ("git", "-C", str(folder), "-c", "core.quotePath=false", *arguments)
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except FileNotFoundError:
        raise OpcheckError("there is no git on the path; the gate reads base by it") from None
