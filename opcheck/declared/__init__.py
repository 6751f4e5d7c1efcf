"""`registry.toml` read into a `Policy`: every error of the file at once, each one sentence with its key."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opcheck.declared.draft import draft
    from opcheck.declared.file import find
    from opcheck.declared.joined import load_all
    from opcheck.declared.policy import json_schema, load, policy_of, write_schema

__all__ = ["draft", "find", "json_schema", "load", "load_all", "policy_of", "write_schema"]

_PLACES = {"draft": "draft", "find": "file", "load_all": "joined"}


def __getattr__(name: str) -> Any:
    """Import what is asked for: to find the file takes a hundredth of the time that it takes to judge it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_PLACES.get(name, 'policy')}"), name)
    globals()[name] = value
    return value
