"""One table from which a declared value is both validated and described in JSON Schema.

A shape reads a plain value (what `tomllib` gives) into a parsed one and collects every error on the way; the same shape
prints the JSON Schema that an editor checks against.
"""

from opcheck.core.schema.base import Problems, Shape, join, meant, show
from opcheck.core.schema.containers import ListOf, MapOf, OneOf, Record, Shared
from opcheck.core.schema.leaves import Boolean, Date, Glob, Integer, Number, Text

__all__ = [
    "Boolean",
    "Date",
    "Glob",
    "Integer",
    "ListOf",
    "MapOf",
    "Number",
    "OneOf",
    "Problems",
    "Record",
    "Shape",
    "Shared",
    "Text",
    "join",
    "meant",
    "show",
]
