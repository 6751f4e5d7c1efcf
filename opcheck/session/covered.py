"""Gather from the workers what the cases reached of the kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from opcheck.core.kernel_coverage import KernelCoverage, Ran, Source, ran_from, source_from
from opcheck.core.reached import merged
from opcheck.run.failure import short


class Covered:
    """What has been reached so far.

    Args:
        inventory: The functions of the registered modules, launched or not.
    """

    def __init__(self, inventory: Iterable[Source]) -> None:
        self._sources = {item.key: item for item in inventory}
        self._ran: dict[str, list[tuple[str, Ran]]] = {}

    def add(self, op: str, data: Mapping[str, Any]) -> None:
        """Take in what a worker says of one case."""
        for item in map(source_from, data["sources"]):
            self._sources.setdefault(item.key, item)
        for ran in map(ran_from, data["ran"]):
            self._ran.setdefault(ran.function, []).append((op, ran))

    def kernels(self, *, whole: bool) -> tuple[KernelCoverage, ...]:
        """Return each function's coverage, by its place.

        Args:
            whole: Whether every op was audited. Else a function that nothing launched is left out where nothing of its
                file was: it belongs to other ops.
        """
        files = {self._sources[key].file for key in self._ran}
        chosen = [item for item in self._sources.values() if whole or item.file in files]
        return tuple(
            merged(replace(item, file=short(item.file)), self._ran.get(item.key, ()))
            for item in sorted(chosen, key=lambda item: (item.file, item.line, item.name))
        )

    def of(self, op: str) -> dict[str, str]:
        """Return in words what has been reached of the kernels that an op launches."""
        kernels = [item for item in self.kernels(whole=False) if op in item.ops]
        lines = f"{sum(item.reached for item in kernels)} of {sum(item.lines for item in kernels)}"
        return {"kernel lines": lines} if kernels else {}
