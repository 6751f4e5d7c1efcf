"""pytest: with `--opcheck`, each check of each declared op is a test; and a fixture for tests of one's own.

Without `--opcheck` nothing but this file is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from opcheck.core.policy import Policy
    from opcheck.core.report import AuditReport
    from opcheck.pytest_audits import Audits

LEVELS = ("quick", "standard", "full")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the flags."""
    group = parser.getgroup("opcheck", "opcheck: audit Triton and CUDA kernels")
    group.addoption("--opcheck", action="store_true", help="also audit the declared ops: a test for each op and check")
    group.addoption("--opcheck-registry", type=Path, metavar="PATH", help="default: the nearest registry.toml upward")
    group.addoption("--opcheck-level", choices=LEVELS, default="standard", help="how hard to look (default: standard)")
    group.addoption("--opcheck-backend", choices=("auto", "cpu", "cuda"), default="auto", help="as `opcheck audit` has")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have xdist give all tests of an op to one worker, so that the op is audited once."""
    if not config.getoption("opcheck") or config.getvalue("dist") not in ("load", "loadgroup"):
        return None
    from xdist.scheduler.loadgroup import LoadGroupScheduling

    file = _registry(config).name

    class ByOp(LoadGroupScheduling):  # type: ignore[misc]
        """Group by marks, as `--dist loadgroup` does, and by ops whether or not the marks reach the node ids."""

        def _split_scope(self, nodeid: str) -> str:
            op = nodeid.partition("::")[0].endswith(file)
            return nodeid.rpartition("::")[0] if op else str(super()._split_scope(nodeid))

    return ByOp(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Collect the registry too, where no argument is or holds it."""
    config = session.config
    if not config.getoption("opcheck"):
        return
    registry = _registry(config)
    named = [(config.invocation_params.dir / arg.partition("::")[0]).resolve() for arg in config.args]
    explicit = config.args_source is pytest.Config.ArgsSource.ARGS and any("::" in arg for arg in config.args)
    if not explicit and not any(registry.is_relative_to(path) for path in named):
        config.args.append(str(registry))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect registry.toml: the file of which the ops' tests are made."""
    if not parent.config.getoption("opcheck") or file_path.resolve() != _registry(parent.config):
        return None
    return RegistryFile.from_parent(parent, path=file_path)


@pytest.fixture(scope="session")
def opcheck_audit(pytestconfig: pytest.Config) -> Iterator[Callable[..., AuditReport]]:
    """Return `audit(op, level=..., checks=...)`, which audits a registered op and returns its `AuditReport`, once."""
    audits = _audits(pytestconfig)
    yield audits.report
    audits.close()


class RegistryFile(pytest.File):
    """registry.toml as pytest sees it: namespaces, in them ops, in them checks."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        from opcheck.checks import all_checks, limits_by_check
        from opcheck.core.sanitizer import SANITIZE
        from opcheck.declared import load
        from opcheck.errors import OpcheckError

        try:
            policy = load(self.path, limits_by_check())
        except OpcheckError as error:
            raise self.CollectError(str(error)) from None
        checks = tuple(
            name for name in sorted(all_checks()) if name != SANITIZE
        )  # which only the command line asks for
        for namespace in sorted({name.partition("::")[0] for name in policy.ops}):
            yield Namespace.from_parent(self, name=namespace, policy=policy, checks=checks)
        yield GateItem.from_parent(self, name="gate")


class Namespace(pytest.Collector):
    """The ops of one namespace."""

    def __init__(self, *, policy: Policy, checks: tuple[str, ...], **more: Any) -> None:
        super().__init__(**more)
        self.policy, self.checks = policy, checks

    def collect(self) -> Iterable[pytest.Collector]:
        for op in sorted(self.policy.ops):
            namespace, _, name = op.partition("::")
            if namespace == self.name:
                yield OpCollector.from_parent(self, name=name, op=op, policy=self.policy, checks=self.checks)


class OpCollector(pytest.Collector):
    """The checks of one op."""

    def __init__(self, *, op: str, policy: Policy, checks: tuple[str, ...], **more: Any) -> None:
        super().__init__(**more)
        self.op, self.policy, self.checks = op, policy, checks

    def collect(self) -> Iterable[pytest.Item]:
        text = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        line = next((at for at, item in enumerate(text) if item.startswith(f'[op."{self.op}"')), 0)
        accept = self.policy.gate.accept
        items = [CheckItem.from_parent(self, name=check, op=self.op, accept=accept) for check in self.checks]
        for item in (*items, ProofItem.from_parent(self, name="unproven", op=self.op)):
            item.line = line
            if self.config.pluginmanager.hasplugin("xdist"):
                item.add_marker(pytest.mark.xdist_group(self.op))
            yield item


class _Item(pytest.Item):
    line = 0  # in registry.toml, from 0

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Print what opcheck says, without a traceback of its own lines."""
        from opcheck.errors import OpcheckError

        return str(excinfo.value) if isinstance(excinfo.value, OpcheckError) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Say where the test is declared: at the op's table."""
        return self.path, self.line, self.nodeid.partition("::")[2]


class CheckItem(_Item):
    """One check of one op, on all of the op's cases."""

    def __init__(self, *, op: str, accept: Iterable[Any], **more: Any) -> None:
        super().__init__(**more)
        self.op, self.accept = op, frozenset(accept)

    def runtest(self) -> None:
        _audits(self.config).judge(self.op, self.name, self.accept, _wanted(self.session, self.op))


class ProofItem(_Item):
    """Whether each tensor of an op can be judged in some case."""

    def __init__(self, *, op: str, **more: Any) -> None:
        super().__init__(**more)
        self.op = op

    def runtest(self) -> None:
        _audits(self.config).judge_proof(self.op, _wanted(self.session, self.op))


class GateItem(_Item):
    """Whether registrations, contracts and waivers agree."""

    def runtest(self) -> None:
        _audits(self.config).judge_registry()


def _wanted(session: pytest.Session, op: str) -> set[str]:
    """Return the checks of an op whose tests are to run: no other need be made."""
    return {item.name for item in session.items if isinstance(item, CheckItem) and item.op == op}


_AUDITS = pytest.StashKey["Audits"]()


def _audits(config: pytest.Config) -> Audits:
    """Return the audits of this process; one session of workers, opened when it is first needed."""
    if _AUDITS not in config.stash:
        from opcheck.pytest_audits import Audits

        audits = Audits(
            registry=_registry(config),
            level=config.getoption("opcheck_level"),
            backend=config.getoption("opcheck_backend"),
        )
        config.stash[_AUDITS] = audits
        config.add_cleanup(audits.close)
    return config.stash[_AUDITS]


def _registry(config: pytest.Config) -> Path:
    from opcheck.declared import find
    from opcheck.errors import OpcheckError

    given = config.getoption("opcheck_registry")
    try:
        file = Path(given) if given else find(config.invocation_params.dir)
    except OpcheckError as error:
        raise pytest.UsageError(f"--opcheck: {error}") from None
    if not file.is_file():
        raise pytest.UsageError(f"--opcheck-registry: there is no file {file}")
    return file.resolve()
