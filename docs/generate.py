"""Write docs/registry.md from the schema of registry.toml: `python docs/generate.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

HEAD = """# registry.toml

What every op promises, and how closely it is held to it. opcheck takes the nearest `registry.toml` upward from where it
is called, and puts its folder on `sys.path`, so that the modules named in it import. `opcheck lint` checks the file and
prints the table of an op that is not declared yet. Editors that know JSON Schema complete and check the file by its
first line: `#:schema ./opcheck/schemas/registry.schema.json`.

Only `kind`, `dtypes` and `dims` are required for an op. Limits stand under the name of their check: in
`[defaults.CHECK]` for all ops, in `[op."ns::name".CHECK]` for one, and one level deeper for one element type. A limit
that is looser than the one above it needs a `reason`. This page is made from the schema by `python docs/generate.py`.
"""


def page() -> str:
    """Return the page."""
    from opcheck.checks import limits_by_check
    from opcheck.declared import json_schema

    schema = json_schema(limits_by_check())
    return HEAD + "".join(f"\n## {title}\n\n{_rows(table, schema)}" for title, table in _tables(schema))


def _tables(schema):
    top = schema["properties"]
    yield "[registry]", top["registry"]
    yield "[gate]", top["gate"]
    yield '[op."ns::name"]', next(iter(_values(_resolved(top["op"], schema))))
    yield "[[waiver]]", _resolved(top["waiver"], schema)["items"]


def _values(table):
    yield from table.get("patternProperties", {}).values()
    if isinstance(table.get("additionalProperties"), dict):
        yield table["additionalProperties"]


def _resolved(node, schema):
    while "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        node = {**schema["$defs"][name], **{key: value for key, value in node.items() if key != "$ref"}}
    return node


def _rows(table, schema):
    table = _resolved(table, schema)
    required = set(table.get("required", ()))
    lines = ["| key | meaning |", "| --- | --- |"]
    for name, node in table["properties"].items():
        meaning = _resolved(node, schema).get("description", "")
        choices = _resolved(node, schema).get("enum")
        if choices:
            meaning += f" One of {', '.join(json.dumps(item) for item in choices)}."
        lines.append(f"| `{name}`{' (required)' if name in required else ''} | {meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "registry.md").write_text(page())
