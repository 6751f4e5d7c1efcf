"""What an audit leaves for the next one and for the gate: each op's outcome, and all that the outcome rests on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

SCHEMA = 1

Place = tuple[str, str, str, str, bool]  # op, backend, capability, level, whole
_Stats = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What an outcome rests on.

    Attributes:
        files: Digest of each project file that was imported or read, by its path from the registry's folder.
        stats: Size and time of change, in nanoseconds, of those files when they were hashed: a shortcut, no evidence.
        folders: Digest of what can be imported from each folder that was walked, by its path.
        distributions: Version of each distribution, python and opcheck among them; opcheck's names its source too.
        variables: The environment's variables that change what kernels do.
        asked: Digest of what was asked of the op; see `asked`.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    stats: _Stats = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    asked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The outcome of one op on one backend at one level: a line of an evidence file.

    Attributes:
        device: What it ran on, in words.
        capability: `"sm_90"`, empty on the CPU.
        whole: Whether nothing was left out by `-k`, `--case`, `--check` or `-x`, and all that was planned ran.
        exit_ok: Whether the gate's policy at the time accepted the verdict.
        case_ids: Every case, so that one that is gone shows.
        waivers: The waivers, in words, that made a finding of it a limitation.
        again: Why the next audit runs it again whatever its key says (a FAIL, a crash ...), empty where it need not.
        thresholds: The limits that held, by check and element type.
        used: How much of its limit each check and element type used at most, `"numerics float32"` -> measured/allowed.
        coverage: What its cases combined and reached, in words.
        finished: When, in UTC; no part of the key.
        key: Digest of what it rests on, the backend and the capability.
        details: Path of the op's report as JSON, from the folder of the evidence file; empty where there is none.
    """

    op: str
    backend: str
    device: str
    level: str
    verdict: str
    schema: int = SCHEMA
    capability: str = ""
    seeds: tuple[int, ...] = (0,)
    budget: float | None = None
    checks: tuple[str, ...] = ()
    whole: bool = False
    exit_ok: bool = False
    cases: int = 0
    case_ids: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    waivers: tuple[str, ...] = ()
    again: str = ""
    thresholds: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    used: Mapping[str, float] = field(default_factory=dict)
    coverage: Mapping[str, str] = field(default_factory=dict)
    finished: str = ""
    manifest: Manifest = field(default_factory=Manifest)
    key: str = ""
    details: str = ""

    @property
    def place(self) -> Place:
        """What it is evidence of: of two with the same place the newer counts."""
        return self.op, self.backend, self.capability, self.level, self.whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What the registry's modules held when they were last imported: the other kind of line of an evidence file.

    Attributes:
        ops: Where each op is registered, by its name.
        failures: What could not be imported, as sentences.
        environment: Versions, device and settings, as a report has them.
        policy: Digest of the whole of `registry.toml`; no part of the key.
        manifest: All modules of the registry and the folders that were walked for them.
    """

    backend: str
    schema: int = SCHEMA
    device: str = ""
    capability: str = ""
    ops: Mapping[str, str] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    policy: str = ""
    finished: str = ""
    manifest: Manifest = field(default_factory=Manifest)
    key: str = ""

    @property
    def place(self) -> Place:
        """As of an op without a name."""
        return "", self.backend, self.capability, "", True


Line = Evidence | Described


def digest(value: Any) -> str:
    """Return the digest of plain values: of their JSON, with the keys sorted."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def asked(
    document: Mapping[str, Any],
    op: str,
    *,
    level: str,
    seeds: Iterable[int],
    budget: float | None,
    checks: Iterable[str],
    case_ids: Iterable[str],
) -> str:
    """Return the digest of what is asked of an op.

    Args:
        document: `registry.toml` as `tomllib` reads it; only the op's own table and the defaults count, so that a limit
            of another op changes nothing. Waivers do not: what they cover is run again in any case.
        op: The op; empty for the registry as a whole, of which only the modules are asked.
    """
    if not op:
        return digest({"modules": document.get("registry", {}).get("modules", [])})
    return digest(
        {
            "contract": document.get("op", {}).get(op),
            "defaults": document.get("defaults", {}),
            "level": level,
            "seeds": list(seeds),
            "budget": budget,
            "checks": sorted(checks),
            "case_ids": sorted(case_ids),
        }
    )


def asked_of(line: Line, document: Mapping[str, Any]) -> str:
    """Return the digest of what `document` now asks of what a line is evidence of."""
    if isinstance(line, Described):
        return asked(document, "", level="", seeds=(), budget=None, checks=(), case_ids=())
    return asked(
        document, line.op, level=line.level, seeds=line.seeds, budget=line.budget, checks=line.checks,
        case_ids=line.case_ids,
    )  # fmt: skip


def key_of(manifest: Manifest, backend: str, capability: str) -> str:
    """Return the digest by which evidence is told to be of something else: everything in a manifest but the stats."""
    parts = {item.name: getattr(manifest, item.name) for item in fields(Manifest) if item.name != "stats"}
    return digest({**parts, "backend": backend, "capability": capability})


def intact(line: Line) -> bool:
    """Say whether a line's key is that of its own manifest: one that was edited by hand is no evidence."""
    return line.key == key_of(line.manifest, line.backend, line.capability)


def merge(*files: Iterable[Line]) -> tuple[Line, ...]:
    """Return the lines of several files, the newest of each place: machines add to each other's, as no two share one.

    Of two as old as each other the one of the later file counts.
    """
    newest: dict[Place, Line] = {}
    for lines in files:
        for line in lines:
            if line.place not in newest or line.finished >= newest[line.place].finished:
                newest[line.place] = line
    return tuple(newest[place] for place in sorted(newest))


def to_text(lines: Iterable[Line]) -> str:
    """Return the text of an evidence file."""
    return "".join(f"{json.dumps(_plain(line), sort_keys=True, allow_nan=False)}\n" for line in lines)


def _plain(record: Any) -> dict[str, Any]:
    values = {item.name: getattr(record, item.name) for item in fields(record)}
    return {name: _plain(value) if isinstance(value, Manifest) else value for name, value in values.items()}


def from_text(text: str, name: str = "evidence") -> tuple[Line, ...]:
    """Read an evidence file.

    Raises:
        ValueError: A line is not what opcheck writes, or another schema's: one sentence with its place.
    """
    return tuple(
        _line(line, f"{name}:{number}") for number, line in enumerate(text.split("\n"), start=1) if line.strip()
    )


def _line(text: str, place: str) -> Line:
    try:
        data = json.loads(text)
    except ValueError:
        raise ValueError(f"{place} is not JSON") from None
    if not isinstance(data, dict):
        raise ValueError(f"{place} is not an object")
    if not isinstance(data.get("manifest", {}), dict):
        raise ValueError(f"{place} is not evidence: manifest is {data['manifest']!r:.60}")
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{place} is of schema {data.get('schema')!r}; this opcheck reads {SCHEMA}")
    try:
        manifest = Manifest(**_values(Manifest, data.get("manifest", {})))
        whole = {**data, "manifest": manifest}
        return Evidence(**_values(Evidence, whole)) if "op" in data else Described(**_values(Described, whole))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"{place} is not evidence: {error}") from None


#: What a field may hold, by the beginning of its annotation; the rest is taken as it is.
_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,), "bool": (bool,), "int": (int,), "float": (int, float, type(None)), "tuple": (list,),
    "Mapping": (dict,), "_Stats": (dict,), "Manifest": (Manifest,),
}  # fmt: skip


def _values(record: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record that JSON holds; what it does not know is left out, another kind is an error."""
    values: dict[str, Any] = {}
    for item in fields(record):
        if item.name not in data:
            continue
        kind = str(item.type).partition("[")[0].partition(" ")[0]
        if not isinstance(data[item.name], _KINDS[kind]):
            raise ValueError(f"{item.name} is {data[item.name]!r:.60}")
        value: Any = data[item.name]
        values[item.name] = tuple(value) if kind == "tuple" else value
        if kind == "_Stats":
            values[item.name] = {path: (int(size), int(when)) for path, (size, when) in value.items()}
    return values
