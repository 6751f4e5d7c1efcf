"""Shapes that several tables share: dtypes, names, reasons."""

from __future__ import annotations

from opcheck.core.policy import DTYPES
from opcheck.core.schema import MapOf, Text

LEADING = "..."

_WORD = "[A-Za-z_][A-Za-z0-9_]*"

DTYPE = Text(choices=DTYPES)
REASON = Text(doc="Why, for the reader of the report.", called="the reason, a string that is not blank")
SOURCE = Text(doc="Where the number comes from: a paper, a measurement, an issue.")
OP = Text(
    doc="Qualified name of an op.",
    pattern=rf"{_WORD}::{_WORD}(?:\.{_WORD})?",
    called='the name of an op in quotes, namespace::name, such as [op."ops::softmax"]',
)
MODULE = Text(pattern=rf"{_WORD}(?:\.{_WORD})*", called="the name of a module, such as ops or ops.softmax")
ARGUMENT = Text(pattern=_WORD, called="the name of a parameter")
DIM = Text(pattern=_WORD, called="the name of a dimension")
DIM_OR_LEADING = Text(
    pattern=rf"(?:\.\.\.|{_WORD})", called=f'the name of a dimension, or "{LEADING}" for any leading ones'
)
ARGUMENT_REASONS = MapOf(key=ARGUMENT, item=REASON)
