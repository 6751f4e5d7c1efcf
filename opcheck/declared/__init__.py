"""`registry.toml` read into a `Policy`: every error of the file at once, each one sentence with its key."""

from opcheck.declared.draft import draft
from opcheck.declared.file import find
from opcheck.declared.joined import load_all
from opcheck.declared.policy import json_schema, load, policy_of, write_schema

__all__ = ["draft", "find", "json_schema", "load", "load_all", "policy_of", "write_schema"]
