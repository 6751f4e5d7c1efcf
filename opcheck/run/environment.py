"""What the audit ran on: versions, device, and the settings that change numbers."""

from __future__ import annotations

import importlib.metadata
import os
import platform

import torch

from opcheck.core.version import VERSION

PACKAGES = ("torch", "triton", "numpy", "ml_dtypes")


def versions() -> dict[str, str]:
    """Return the versions of Python and of what the numbers depend on; "missing" where a package is not there."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


def environment(backend: str) -> dict[str, str]:
    """Return versions, device and numeric settings of this process; initialises CUDA where that is the backend."""
    found = {"opcheck": VERSION, **versions(), "platform": platform.platform(terse=True)}
    if backend == "cuda":
        found["device"] = torch.cuda.get_device_name()
        major, minor = torch.cuda.get_device_capability()
        found["capability"] = f"sm_{major}{minor}"
        found["cuda"] = torch.version.cuda or "none"
        found["allow_tf32"] = str(torch.backends.cuda.matmul.allow_tf32)
        found["cudnn_allow_tf32"] = str(torch.backends.cudnn.allow_tf32)
    else:
        interpreted = os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")
        found["device"] = f"{platform.machine()} CPU" + (", Triton interpreted" if interpreted else "")
    return found
