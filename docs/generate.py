"""Write docs/registry.md and docs/cases.md from what the code declares: `python docs/generate.py`."""

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
    yield "[[change]]", _resolved(top["change"], schema)["items"]


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


CASES = """# What a case varies

A case is one line from which every input can be rebuilt: `op[dtype;dims;values;layout;variant;grads;seed]@backend`, for
example `ops::softmax[bfloat16;rows=3,cols=129;tail;x=transposed+grad:out=expanded;;;0]@cpu`. An empty field is the
default. `opcheck audit --co` lists the cases of an op, `opcheck audit --case ID` runs one again. What each field may
hold, and the mistake that it is for, is below; this page is made from the declarations by `python docs/generate.py`.

## dims

One size for each dimension of the contract, and `...0`, `...1` for leading ones. Quick: the smallest legal shape, an
odd one, and one element beyond each tile. Standard: both sides of each tile and several tiles, a size of 1 in each
dimension in turn, just above a power of two, many rows, several ranks, more rows than an axis of a grid holds, the
production shapes. Full: primes, and small sizes of each dimension. Tiles are those that the contract declares and those
that the kernels were seen to use. Legal empty dimensions are ordinary cases; the others must raise.

## values

One family fills the inputs of its kinds; the rest is drawn as in `normal`. "First only" fills the first floating-point
tensor of the sample alone: an odd element in every tensor would hide itself. Families that are not finite are left out
where the contract says `nonfinite = { undefined = ... }`. A contract may ask for more than its kind gets, as
`values = ["near_overflow"]` does for a norm that does not overflow where its squares do.
"""

LAYOUT = """
## layout

`tensor=layout`, joined by `+`; `grad:out=layout` is the upstream gradient of `out`. Only the target sees the layout;
where a layout cannot hold the values as they were drawn, all three roles get the values that it can hold.
"""

REST = """
## variant

Arguments that differ from the sample's, as the contract lists them: `eps=1e-05,approximate="tanh"`. For defaults that
are written into a kernel, and branches that no default takes. `%config=2` is the third configuration of an autotuned
kernel, run alone: the tuner would run the fastest one only, and a wrong one on another machine. Where no `%config`
stands the first is launched, on a GPU as interpreted, so that no verdict depends on the clock; one that cannot be built
on the device gives way to the next, as with the tuner. `%programs=16` runs 16
programs of each interpreted launch and compares what they wrote, for shapes that the interpreter would take minutes
for: the kernel that is wrong beyond 65,535 rows, or in the last program of a large grid (`docs/observe.md`).

## grads

The inputs that require a gradient, and after `>` the outputs that are used: `x+weight>out 1`. For a backward that takes
every upstream gradient, or every `needs_input_grad`, for granted.
"""


def cases_page() -> str:
    """Return the page about what a case varies."""
    from opcheck.core.layouts import LAYOUTS

    layouts = [
        "| layout | for |",
        "| --- | --- |",
        *(f"| `{item.name}` | {item.bug}{_place(item)} |" for item in LAYOUTS),
    ]
    return CASES + _families() + LAYOUT + "\n" + "\n".join(layouts) + "\n" + REST


def _families() -> str:
    from opcheck.core.families import FAMILIES, FLOAT
    from opcheck.core.policy import KINDS

    text = ""
    for title, chosen in (
        ("Floating-point inputs", [item for item in FAMILIES if item.fills == FLOAT]),
        ("Integers, booleans and offsets", [item for item in FAMILIES if item.fills != FLOAT]),
    ):
        text += f"\n### {title}\n\n| family | the values, and the mistake they are for | drawn for | level |\n"
        text += "| --- | --- | --- | --- |\n"
        for item in chosen:
            kinds = "all" if item.kinds == KINDS else ", ".join(item.kinds)
            drawn = kinds if item.fills == FLOAT else ", ".join(item.fills)
            first = " First only." if item.first_only else ""
            level = "quick" if item.quick else "standard"
            text += f"| `{item.name}` | {item.bug}{first} | {drawn} | {level} |\n"
    return text


def _place(item) -> str:
    tensors = (
        "" if item.for_inputs and item.for_gradients else " Gradients only." if item.for_gradients else " Inputs only."
    )
    return tensors + (f" From {item.rank} dimensions on." if item.rank > 1 else "")


PAGES = {"registry.md": page, "cases.md": cases_page}


if __name__ == "__main__":
    for name, text in PAGES.items():
        (ROOT / "docs" / name).write_text(text())
