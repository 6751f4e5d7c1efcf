"""What has to be here before anything can be built: a Triton that compiles, a backend for the target, an assembler."""

from __future__ import annotations

import importlib
import re
from typing import Any

from opcheck.core.building import TARGETS

#: The first release whose `JITFunction.run(warmup=True)` compiles for whatever target the active driver names.
OLDEST = (3, 6)


def obstacle() -> str:
    """Return why this process can build nothing, empty where it can."""
    try:
        triton: Any = importlib.import_module("triton")
    except Exception as error:
        return f"Triton does not import: {type(error).__name__}: {error}"
    numbers = re.match(r"(\d+)\.(\d+)", triton.__version__)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST:
        return f"Triton {triton.__version__} is older than {OLDEST[0]}.{OLDEST[1]}, the first that opcheck builds with"
    if triton.knobs.runtime.interpret:
        return "kernels are interpreted in this process"
    return ""


def unavailable(target: str) -> str:
    """Return why this Triton builds nothing for a target, empty where it does."""
    from triton.backends import backends

    wanted = gpu(target)
    if not any(item.compiler.supports_target(wanted) for item in backends.values()):
        return f"this Triton has no backend for {TARGETS[target].backend}"
    if TARGETS[target].backend != "cuda":
        return ""
    try:
        importlib.import_module("triton.backends.nvidia.compiler").get_ptxas(wanted.arch).path  # noqa: B018
    except (RuntimeError, AttributeError, TypeError) as error:
        return f"ptxas is not to be had: {error}"
    return ""


def gpu(target: str) -> Any:
    """Return Triton's description of a target."""
    from triton.backends.compiler import GPUTarget

    item = TARGETS[target]
    return GPUTarget(item.backend, item.arch, item.warp)
