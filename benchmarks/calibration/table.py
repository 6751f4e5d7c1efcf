"""Print what a tally holds, and the same as one JSON object."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tabulate import tabulate

from benchmarks.calibration.evidence import LAWS
from benchmarks.calibration.settings import STANDING
from benchmarks.calibration.tail import Summary, summary
from benchmarks.calibration.tally import Caught, Fault, Right, Tally

HEAD = ("comparisons", "50 %", "99 %", "99.9 %", "max", "alarms", "exp. rate", "GPD rate")


def text(tally: Tally) -> str:
    """Return the whole report."""
    parts = ["# Right kernels: measured / allowed", *_laws(tally)]
    parts += ["# Right kernels, op by op: the worst of each law", _worst(tally)]
    parts += ["# Alarms", _alarms(tally), "# Gate invalid (INCONCLUSIVE) for right kernels", _invalid(tally)]
    parts += ["# Kernels that lose accuracy: failed by a law (not counted as alarms)", _borderline(tally)]
    parts += [
        "# Planted faults (limit and largest missed fault: over the tensor's scale)",
        _faults(tally, lambda key: (key.fault, key.dtype)),
    ]
    parts += ["# Planted faults by op and shape", _faults(tally, lambda key: (key.fault, key.dtype, key.op, key.sizes))]
    if any(key.setting != STANDING for key in tally.ratios):
        parts += ["# The constants at other values (one seed in some)", _settings(tally)]
    return "\n\n".join(parts)


def data(tally: Tally) -> dict[str, Any]:
    """Return the tables as one JSON object."""
    rights = _grouped(tally.ratios, lambda key: (key.setting, key.law, key.dtype))
    fine = _grouped(_standing(tally.ratios), lambda key: (key.law, key.dtype, key.op, key.kernel, key.reference))
    faults = _joined(tally.faults, lambda key: (key.setting, key.fault, key.dtype, key.op, key.sizes, key.tensor))
    return {
        "right": [{"group": list(key), **summary(values).as_dict()} for key, values in sorted(rights.items())],
        "kernels": [{"group": list(key), **summary(values).as_dict()} for key, values in sorted(fine.items())],
        "alarms": [{"group": list(key), "count": count} for key, count in sorted(tally.alarms.items())],
        "faults": [
            {
                "group": list(key), "planted": item.planted, "first": item.first, "above": item.above,
                "above_missed": item.above_missed, "unjudged": item.unjudged,
                "limit": str(item.limit),
                "largest_missed": str(item.largest_missed),
            }
            for key, item in sorted(faults.items())
        ],
        "told": tally.told,
    }  # fmt: skip


def _laws(tally: Tally) -> Iterator[str]:
    for law in LAWS:
        groups = _grouped(_standing(tally.ratios), lambda key: (key.law, key.dtype))
        rows = [[key[1], *_figures(summary(values))] for key, values in groups.items() if key[0] == law]
        yield f"## {law}\n\n" + _tabulated(rows, ("dtype", *HEAD))


def _worst(tally: Tally) -> str:
    groups = _grouped(_standing(tally.ratios), lambda key: (key.law, key.dtype, key.op, key.kernel, key.reference))
    rows, seen = [], defaultdict(int)
    for key, values in sorted(groups.items(), key=lambda item: -max(item[1])):
        seen[key[:2]] += 1
        if seen[key[:2]] <= 3 and max(values) > 0.0:
            rows.append([*key, *_figures(summary(values))])
    return _tabulated(sorted(rows, key=lambda row: row[:2]), ("law", "dtype", "op", "target", "reference", *HEAD))


def _alarms(tally: Tally) -> str:
    groups: dict[tuple[str, ...], int] = defaultdict(int)
    for key, count in _standing(tally.alarms).items():
        groups[key.law, key.dtype, key.op, key.kernel, key.reference, key.tensor] += count
    told = [f"{name}: {line}" for name, lines in tally.told.items() if name.startswith(STANDING) for line in lines]
    rows = [[*key, count] for key, count in sorted(groups.items())]
    return _tabulated(rows, ("law", "dtype", "op", "target", "reference", "tensor", "alarms")) + "\n" + "\n".join(told)


def _invalid(tally: Tally) -> str:
    groups: dict[tuple[str, ...], int] = defaultdict(int)
    for key, count in _standing(tally.invalid).items():
        groups[key.law, key.dtype, key.op, key.reference, key.values, key.tensor] += count
    rows = [[*key, count] for key, count in sorted(groups.items())]
    return _tabulated(rows, ("law", "dtype", "op", "reference", "values", "tensor", "comparisons"))


def _borderline(tally: Tally) -> str:
    groups = _grouped(_standing(tally.borderline), lambda key: (key.law, key.dtype, key.op, key.kernel))
    rows = [[*key, *_figures(summary(values))[:6]] for key, values in groups.items() if max(values) > 1.0]
    return _tabulated(sorted(rows), ("law", "dtype", "op", "target", *HEAD[:6]))


def _faults(tally: Tally, by: Callable[[Fault], tuple[str, ...]]) -> str:
    groups = _joined({key: value for key, value in tally.faults.items() if key.setting == STANDING}, by)
    rows = [
        [
            *key, item.planted, f"{item.caught / item.planted:.1%}", f"{item.unjudged / item.planted:.1%}", item.above,
            item.above_missed, f"{item.limit:.2g}", f"{item.largest_missed:.2g}",
            ", ".join(f"{law} {item.first[law]}" for law in LAWS if law in item.first),
        ]
        for key, item in sorted(groups.items())
    ]  # fmt: skip
    names = ("fault", "dtype", "op", "shape")[: len(rows[0]) - 8] if rows else ()
    columns = ("planted", "caught", "no gate", "above limit", "of them missed", "limit", "largest missed", "first")
    return _tabulated(rows, (*names, *columns))


def _settings(tally: Tally) -> str:
    groups = _grouped(tally.ratios, lambda key: (key.setting, key.law, "wide" if key.dtype == "float32" else "narrow"))
    faults = _joined(tally.faults, lambda key: (key.setting, "wide" if key.dtype == "float32" else "narrow"))
    rows = []
    for (setting, law, width), values in groups.items():
        if setting == STANDING:
            continue
        item = faults.get((setting, width), Caught())
        found = summary(values)
        alone = sum(item.first.values())
        rows.append([setting, law, width, *_figures(found), item.planted, alone])
    return _tabulated(rows, ("constant", "law", "dtypes", *HEAD, "faults", "caught by the law"))


def _figures(found: Summary) -> list[str]:
    return [
        str(found.count), f"{found.median:.2g}", f"{found.q99:.3g}", f"{found.q999:.3g}", f"{found.largest:.3g}",
        str(found.alarms), f"{found.exponential:.1e}", f"{found.pareto:.1e}",
    ]  # fmt: skip


def _grouped(ratios: Mapping[Right, Iterable[float]], by: Callable[[Right], tuple[str, ...]]):
    groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for key, values in ratios.items():
        groups[by(key)].extend(values)
    return groups


def _joined(faults: Mapping[Fault, Caught], by: Callable[[Fault], tuple[str, ...]]) -> dict[tuple[str, ...], Caught]:
    groups: dict[tuple[str, ...], Caught] = {}
    for key, item in faults.items():
        groups.setdefault(by(key), Caught()).add(item)
    return groups


def _standing(items: Mapping[Right, Any]) -> dict[Right, Any]:
    return {key: value for key, value in items.items() if key.setting == STANDING}


def _tabulated(rows: list[list[Any]], head: tuple[str, ...]) -> str:
    return tabulate(rows, headers=head, tablefmt="pipe", disable_numparse=True) if rows else "none"
