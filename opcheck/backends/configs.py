"""Run one configuration of every autotuned kernel alone, or run them all first, as autotuning does on a GPU.

Which configuration a tuner chooses depends on the clock, and what is judged must not: a case launches the configuration
that its id names, else the first, on a GPU as interpreted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from opcheck.backends.launches import kernel_name
from opcheck.core.variants import config_of

Run = Callable[..., Any]


@contextlib.contextmanager
def only_config(index: int) -> Iterator[None]:
    """Launch configuration `index` of every autotuned kernel in the block, interpreted or compiled.

    A kernel that offers fewer, whose pruning takes this one out, or for which this one cannot be built, launches the
    next that it may: so does the tuner, which leaves out what cannot be built.
    """

    def run(plain: Run, self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        offered = self.configs
        allowed = _allowed(self, args, kwargs)
        wanted = offered[index % len(offered)]
        at = next((place for place, item in enumerate(allowed) if item is wanted), index % len(allowed))
        refused: Exception | None = None
        try:
            for chosen in (*allowed[at:], *allowed[:at]):
                # Else a GPU that has tuned for these arguments before launches what was fastest then.
                self.configs = [chosen]
                try:
                    return plain(self, *args, **kwargs)
                except unbuildable() as error:
                    refused = refused or error
        finally:
            self.configs = offered
        assert refused is not None
        raise refused

    with _instead(run):
        yield


def configured(variant: str) -> contextlib.AbstractContextManager[None]:
    """Launch the configuration that a case's variant asks for; without one, the first."""
    return only_config(config_of(variant) or 0)


@contextlib.contextmanager
def tuning() -> Iterator[set[str]]:
    """Launch every configuration on the live arguments before the one that counts, as a GPU does on a first call.

    The tuner's own hooks run around each, so that what `restore_value` and `reset_to_zero` name is put back; whatever
    else a kernel changes of its arguments shows in the result. What cannot be built is left out.

    Yields:
        The names of the kernels that were tuned, filled as they are.
    """
    tuned: set[str] = set()

    def run(plain: Run, self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        allowed = _allowed(self, args, kwargs)
        if len(allowed) > 1:
            tuned.add(kernel_name(self.base_fn))
            named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
            for config in allowed:
                whole = {**named, **config.all_kwargs()}
                if config.pre_hook is not None:
                    config.pre_hook(whole)
                self.pre_hook(whole)
                failed: Exception | None = None
                try:
                    self.fn.run(*args, **kwargs, **config.all_kwargs())
                except unbuildable() as error:
                    failed = error
                self.post_hook(whole, exception=failed)
            self.pre_hook({**named, **allowed[0].all_kwargs()}, reset_only=True)
        return plain(self, *args, **kwargs)

    with _instead(run):
        yield tuned


def unbuildable() -> tuple[type[Exception], ...]:
    """Return the errors for which Triton's tuner leaves a configuration out (`Autotuner._bench`)."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources, PTXASError

    return (OutOfResources, CompileTimeAssertionFailure, PTXASError)


def _allowed(tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    from opcheck.backends.interpreter.autotune import candidates

    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    return candidates(tuner, kwargs)


@contextlib.contextmanager
def _instead(run: Callable[[Run, Any, tuple[Any, ...], dict[str, Any]], Any]) -> Iterator[None]:
    from triton.runtime.autotuner import Autotuner

    plain = Autotuner.run

    def replaced(self: Any, *args: Any, **kwargs: Any) -> Any:
        return run(plain, self, args, kwargs)

    Autotuner.run = replaced
    try:
        yield
    finally:
        Autotuner.run = plain
