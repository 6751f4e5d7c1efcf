"""Write a new op: its folder with kernel, reference, golden and samples, its table in registry.toml, and a test."""

from __future__ import annotations

import argparse
import importlib.util
import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

from opcheck.checks import limits_by_check
from opcheck.commands.streams import show
from opcheck.core.gate import ExitStatus
from opcheck.core.policy import Policy
from opcheck.declared import find, load
from opcheck.declared.file import NAME
from opcheck.errors import OpcheckError, PolicyError

KINDS = ("elementwise", "reduction", "normalization")
_NAME = re.compile(r"([A-Za-z_]\w*)::([A-Za-z_]\w*)", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("op", metavar="NS::OP", help="name of the op, such as my_ops::scale")
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0], help=f"template to start from (default: {KINDS[0]})")
    parser.add_argument(
        "--package", metavar="NAME", help="folder of the ops (default: the registry's first package, else NS)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the files, none of which may exist, and say what to run."""
    namespace, op = _parts(arguments.op)
    registry, policy = _registry(arguments.registry)
    package = arguments.package or _package(registry, policy, namespace)
    if not package.isidentifier() or keyword.iskeyword(package):
        raise OpcheckError(f"--package {package!r} is not the name of a Python package")
    _refuse_taken(arguments.op, registry, policy, package)
    texts = _texts(arguments.op, namespace, op, arguments.kind, registry.parent, package)
    if taken := [path for path in texts if path.exists()]:
        raise OpcheckError(f"{taken[0]} exists already; nothing was written")
    head = "" if policy is not None else f'schema = 1\n\n[registry]\nmodules = ["{package}"]\n'
    table = _filled(f"{arguments.kind}/registry.toml", name=arguments.op, ns=namespace, op=op)
    written = _written(texts, registry.parent / package / "__init__.py")
    with registry.open("a", encoding="utf-8") as file:
        file.write(f"{head}\n{table}")
    show("".join(f"wrote {_near(path)}\n" for path in (*written, registry)))
    show(f"now: python -m opcheck audit {arguments.op}\n")
    return ExitStatus.OK


def _parts(name: str) -> tuple[str, str]:
    found = _NAME.fullmatch(name)
    if found is None:
        raise OpcheckError(f"{name!r} is not an op name; it should read namespace::op, two Python identifiers")
    for part in found.groups():
        if keyword.iskeyword(part):
            raise OpcheckError(f"{name!r} is not an op name: {part} is a word of Python's own")
    return found[1], found[2]


def _registry(given: Path | None) -> tuple[Path, Policy | None]:
    """Return where the registry is or is to be, and what it says, None where there is none yet."""
    try:
        path = given or find()
    except PolicyError:
        return Path.cwd() / NAME, None
    path = path.absolute()
    return path, load(path, limits_by_check()) if path.exists() else None


def _package(registry: Path, policy: Policy | None, namespace: str) -> str:
    """Return the folder that holds the ops: the first module of the registry that is a package beside it."""
    modules = policy.modules if policy is not None else ()
    held = [name for name in modules if (registry.parent / name / "__init__.py").is_file()]
    return held[0] if held else namespace


def _refuse_taken(name: str, registry: Path, policy: Policy | None, package: str) -> None:
    if policy is not None and name in policy.ops:
        raise OpcheckError(f"{name} is declared in {registry} already; choose another name")
    if policy is not None and package not in policy.modules:
        raise OpcheckError(
            f"registry.modules in {registry} has no {package!r}; add it there, or give --package one of "
            f"{', '.join(policy.modules)}"
        )
    folder = registry.parent / package
    spec = importlib.util.find_spec(package)
    if spec is not None and not folder.is_dir():
        raise OpcheckError(f"a folder {folder} would hide the package {package} that is installed; give --package NAME")


def _texts(name: str, namespace: str, op: str, kind: str, root: Path, package: str) -> dict[Path, str]:
    words = {"name": name, "ns": namespace, "op": op}
    folder = root / package / op
    texts = {folder / item: _filled(f"{kind}/{item}", **words) for item in ("__init__.py", "kernel.py", "reference.py")}
    return {**texts, root / "tests" / f"test_{namespace}_{op}.py": _filled("test.py", **words)}


def _filled(template: str, **words: str) -> str:
    return Template((files("opcheck") / "templates" / f"{template}.txt").read_text(encoding="utf-8")).substitute(words)


def _written(texts: dict[Path, str], marker: Path) -> list[Path]:
    """Write the files, and the empty one that makes their folder a package where it is missing."""
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if marker.exists():
        return list(texts)
    marker.touch()
    return [marker, *texts]


def _near(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
