"""Follow names from a function through a package to the kernels that it launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from opcheck.discovery.source import Definition, Module

Key = tuple[str, str]  # module, name in it
_DEEPEST = 8  # re-exports of re-exports


@dataclass(slots=True, kw_only=True)
class Reach:
    """The definitions of a package and what each reaches: a best effort, by names alone.

    Attributes:
        bodies: The definitions that an operator's name, `ns::op`, stands for.
    """

    modules: Mapping[str, Module]
    bodies: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)
    _kernels: dict[Key, tuple[str, ...]] = field(default_factory=dict)

    def definition(self, key: Key) -> Definition:
        """Return the definition of a key."""
        return self.modules[key[0]].definitions[key[1]]

    def all(self) -> Iterator[tuple[Key, Definition]]:
        """Yield every definition of the package."""
        for module in self.modules.values():
            yield from (((module.name, name), item) for name, item in module.definitions.items())

    def kernels(self, start: Key) -> tuple[str, ...]:
        """Return the kernels that are launched by a definition or by what it refers to, by `module.name`, sorted."""
        if start not in self._kernels:
            found: set[str] = set()
            seen, waiting = {start}, [start]
            while waiting:
                for key in self._uses(waiting.pop()):
                    if key in seen:
                        continue
                    seen.add(key)
                    if self.definition(key).kind == "kernel":
                        found.add(".".join(key))
                    else:
                        waiting.append(key)
            self._kernels[start] = tuple(sorted(found))
        return self._kernels[start]

    def launched(self, key: Key) -> tuple[str, ...]:
        """Return the kernels that a definition launches itself."""
        found = (self._resolved(key, name) for name in self.definition(key).launches)
        return tuple(sorted(".".join(item) for item in found if item and self.definition(item).kind == "kernel"))

    def implementations(self, operator: str) -> tuple[Key, ...]:
        """Return the functions whose decorators name an operator, and those that are given for it in a call."""
        names = {operator, operator.partition("::")[2]}
        found = [key for key, made in self.all() if made.kind == "function" and names & set(made.decorated)]
        for module in self.modules.values():
            given = (self._named(module, name, _DEEPEST) for text, name in module.implements if text == operator)
            found += [key for key in given if key]
        return tuple(dict.fromkeys(found))

    def _uses(self, key: Key) -> Iterator[Key]:
        for name in self.definition(key).refers:
            if name.startswith("torch.ops."):
                yield from self.bodies.get("::".join(name.split(".")[2:4]), ())
            found = self._resolved(key, name)
            if found is not None:
                yield found

    def _resolved(self, key: Key, name: str) -> Key | None:
        """Return what a name means inside of a definition: nested in it, of its module, or imported."""
        module = self.modules[key[0]]
        head = name.partition(".")[0]
        scope = key[1]
        while scope:
            if f"{scope}.{head}" in module.definitions:
                return module.name, f"{scope}.{head}"
            scope = scope.rpartition(".")[0]
        return self._named(module, name, _DEEPEST)

    def _named(self, module: Module, name: str, depth: int) -> Key | None:
        head, _, rest = name.partition(".")
        if head in module.definitions:
            return module.name, head
        if head not in module.imports or not depth:
            return None
        full = ".".join(part for part in (module.imports[head], rest) if part)
        parts = full.split(".")
        for at in range(len(parts) - 1, 0, -1):
            found = self.modules.get(".".join(parts[:at]))
            if found is not None:
                return self._named(found, ".".join(parts[at:]), depth - 1)
        return None
