"""Run one configuration of an autotuned kernel, and say which: without a GPU there is nothing to time.

```python
from opcheck.backends.interpreter import autotune

for index in range(autotune.seen_tuners()["kernels.softmax_kernel"]):
    with autotune.select_config(index):
        softmax(x)
```
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from triton.runtime.errors import AutotunerError

_index = 0
_seen: dict[str, int] = {}


@contextlib.contextmanager
def select_config(index: int) -> Iterator[None]:
    """Launch configuration `index`, modulo the number of configurations, of every autotuned kernel in the block."""
    global _index
    previous, _index = _index, index
    try:
        yield
    finally:
        _index = previous


def seen_tuners() -> MappingProxyType[str, int]:
    """Return the autotuned kernels launched so far, `module.qualname`, with the most configurations each offered."""
    return MappingProxyType(_seen)


def run(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace `Autotuner.run`: launch the selected configuration as one that was timed earlier is launched.

    Such a launch calls the configuration's own `pre_hook`. The tuner's `pre_hook` and `post_hook`, `reset_to_zero` and
    `restore_value` among them, belong to the timing runs on a GPU too: a kernel that needs them for its result is wrong
    from its second launch on, and wrong here.
    """
    self.nargs = dict(zip(self.arg_names, args, strict=False))
    configs = candidates(self, kwargs)
    name = f"{self.base_fn.__module__}.{self.base_fn.__qualname__}"
    _seen[name] = max(_seen.get(name, 0), len(configs))
    config = configs[_index % len(configs)]
    self.best_config = config
    if config.pre_hook is not None:
        config.pre_hook({**self.nargs, **kwargs, **config.all_kwargs()})
    result = self.fn.run(*args, **kwargs, **config.all_kwargs())
    self.nargs = None
    return result


def candidates(tuner: Any, kwargs: dict[str, Any]) -> list[Any]:
    """Prune as the tuner would; its arguments stand in `tuner.nargs`.

    A pruning function that asks for a driver cannot run without a GPU: then nothing is pruned.
    """
    if len(tuner.configs) == 1:
        return list(tuner.configs)
    try:
        return list(tuner.prune_configs(kwargs))
    except AutotunerError:
        raise
    except RuntimeError as error:
        if "driver" not in str(error):
            raise
        return list(tuner.configs)
