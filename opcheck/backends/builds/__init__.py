"""Build a recorded launch for a GPU that is not here, with Triton's own binder, compiler and assemblers."""

from __future__ import annotations

from opcheck.backends.builds.build import build
from opcheck.backends.builds.tools import obstacle, unavailable

__all__ = ["build", "obstacle", "unavailable"]
