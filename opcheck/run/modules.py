"""Import the modules of a registry so that their decorators run; a module that fails is a finding, not the end."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Collection, Iterator

from opcheck.run.failure import describe


def put_on_path(root: str) -> None:
    """Put the folder of registry.toml first on `sys.path`, so that its modules import; none where it is empty."""
    if root and root not in sys.path:
        sys.path.insert(0, root)


def import_modules(
    modules: Collection[str], *, skip: Collection[str] = (), announce: Callable[[str], None] = lambda name: None
) -> dict[str, str]:
    """Import modules, and all that packages among them hold; return what failed, by module, as sentences.

    Args:
        skip: Modules that are not imported, because an earlier attempt killed its process.
        announce: Called with a module's name before it is imported.
    """
    failures: dict[str, str] = {}
    for name in modules:
        for found in _walk(name, skip, announce, failures):
            _import(found, skip, announce, failures)
    return failures


def _walk(name: str, skip: Collection[str], announce: Callable[[str], None], failures: dict[str, str]) -> Iterator[str]:
    if not _import(name, skip, announce, failures):
        return
    path = getattr(sys.modules[name], "__path__", None)
    for info in pkgutil.iter_modules(path, prefix=f"{name}.") if path is not None else ():
        if info.ispkg:
            yield from _walk(info.name, skip, announce, failures)
        else:
            yield info.name


def _import(name: str, skip: Collection[str], announce: Callable[[str], None], failures: dict[str, str]) -> bool:
    if name in skip or name in failures:
        return False
    if name in sys.modules:
        return True
    announce(name)
    try:
        importlib.import_module(name)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        failures[name] = _sentence(name, error)
        return False
    return True


def _sentence(name: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
        return (
            f"there is no module {error.name} in {sys.path[0]} or elsewhere on the path; "
            f"mend registry.modules in registry.toml"
        )
    raised = describe(error, "target", "import")
    if not raised.error:
        told = raised.where.rpartition(":")[0] in raised.message
        return f"importing {name}: {raised.message}" if told else f"importing {name}: {raised.where}: {raised.message}"
    place = f" at {raised.where}" if raised.where else ""
    return f"importing {name} raised {raised.error}{place}: {raised.message}".rstrip(": ")
