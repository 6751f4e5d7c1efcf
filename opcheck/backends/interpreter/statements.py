"""Read a kernel's source: its statements, its masked accesses, what its author excluded; and mark them in its AST."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from opcheck.core.kernel_coverage import Mask, Source, Statement, excludes

#: Names that marked kernels call: with the number of a statement before it, and around a mask with its number.
REACHED, MASKED = "_opcheck_reached", "_opcheck_masked"

_LONGEST = 60  # characters of a condition

#: Where the mask stands among the positional arguments of `tl.load` and its like.
_MASK_AT = {
    **dict.fromkeys(("load", "atomic_load"), 1),
    **dict.fromkeys(("store", "atomic_store", "atomic_add", "atomic_max", "atomic_min"), 2),
    **dict.fromkeys(("atomic_and", "atomic_or", "atomic_xor", "atomic_xchg"), 2),
}


def source_of(function: Callable[..., Any]) -> Source | None:
    """Read the source of a Python function that `@triton.jit` decorates, None where there is none."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    ast.increment_lineno(tree, first - 1)
    reading = _Reading(lines, first)
    whole = reading.marked(tree.lineno, tree.body[0].lineno)
    reading.body(tree.body, "", excluded=whole)
    return Source(
        name=f"{function.__module__}.{function.__qualname__}",
        file=function.__code__.co_filename,
        line=tree.lineno,
        statements=tuple(reading.found),
        masks=tuple(
            Mask(
                line=call.lineno, access=_name(call), text=_short(mask),
                excluded=whole or any(start <= call.lineno <= end for start, end in reading.left_out),
            )
            for call, mask in _masks(tree, function.__globals__)
        ),
        excluded=whole,
    )  # fmt: skip


def mark(function: ast.FunctionDef, namespace: Mapping[str, Any], statement: int, mask: int) -> None:
    """Put a call before every statement of a function, and one around every mask, numbered on from those given.

    The numbers follow the order of `Source.statements` and `Source.masks` of the same function.
    """
    for number, (call, value) in enumerate(list(_masks(function, namespace)), mask):
        _put(call, value, ast.copy_location(_call(MASKED, ast.Constant(number), value), value))
    for block in list(_blocks(function.body)):
        marked: list[ast.stmt] = []
        for item in block:
            if _counts(item):
                marker = ast.Expr(_call(REACHED, ast.Constant(statement)))
                marked.append(ast.copy_location(marker, item))
                statement += 1
            marked.append(item)
        block[:] = marked


class _Reading:
    """Reads the statements of one function.

    Attributes:
        found: The statements, block by block.
        left_out: First and last line of what the author excluded.
    """

    def __init__(self, lines: list[str], first: int) -> None:
        self.found: list[Statement] = []
        self.left_out: list[tuple[int, int]] = []
        self._pragmas = [at for at, line in enumerate(lines, first) if excludes(line)]

    def marked(self, start: int, end: int) -> bool:
        """Say whether one of the lines from `start` on, before `end` but at least one, carries the comment."""
        return any(start <= line < max(end, start + 1) for line in self._pragmas)

    def body(self, block: list[ast.stmt], unless: str, *, excluded: bool) -> None:
        """Read a block, and then the blocks in it."""
        inner = []
        for item in block:
            parts = list(_parts(item))
            end = parts[0][0][0].lineno if parts else (item.end_lineno or item.lineno) + 1
            out = excluded or self.marked(item.lineno, end)
            if out:
                last = parts[0][0][-1] if parts else item
                self.left_out.append((item.lineno, last.end_lineno or last.lineno))
            if _counts(item):
                self.found.append(Statement(line=item.lineno, unless=unless, excluded=out))
            before = end
            for number, (part, why) in enumerate(parts):
                # The first part belongs to the statement's own line; an `else:` has a line of its own.
                hidden = excluded or (out if not number else self._else_marked(before, part))
                if hidden and number:
                    self.left_out.append((part[0].lineno, part[-1].end_lineno or part[-1].lineno))
                inner.append((part, why or unless, hidden))
                before = (part[-1].end_lineno or part[-1].lineno) + 1
        for part, why, hidden in inner:
            self.body(part, why, excluded=hidden)

    def _else_marked(self, before: int, part: list[ast.stmt]) -> bool:
        return before < part[0].lineno and self.marked(before, part[0].lineno)


def _blocks(block: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Yield a block and the blocks in it, in the order in which `_Reading.body` reads them."""
    yield block
    for item in block:
        for part, _ in _parts(item):
            yield from _blocks(part)


def _parts(item: ast.stmt) -> Iterator[tuple[list[ast.stmt], str]]:
    """Yield the blocks of a statement, each with what is the case where it is not reached."""
    match item:
        case ast.If(test=test, body=body, orelse=orelse):
            condition = f"`if {_short(test)}` (line {item.lineno}) was never"
            yield body, f"{condition} true"
            if orelse:
                yield orelse, f"{condition} false"
        case ast.For() | ast.While():
            yield item.body, f"the loop of line {item.lineno} was never entered"
            if item.orelse:
                yield item.orelse, f"the loop of line {item.lineno} never came to its end"
        case ast.With() | ast.FunctionDef():
            yield item.body, ""
        case _:
            return


def _counts(item: ast.stmt) -> bool:
    """Say whether a statement does anything: a docstring does not."""
    return not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))


def _masks(function: ast.FunctionDef, namespace: Mapping[str, Any]) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield every access that is given a mask, with the mask."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or (name := _name(node)) not in _MASK_AT:
            continue
        mask = next((item.value for item in node.keywords if item.arg == "mask"), None)
        at = _MASK_AT[name]
        if mask is None and len(node.args) > at and _of_triton(node.func, namespace):
            mask = node.args[at]
        if mask is not None and not (isinstance(mask, ast.Constant) and mask.value is None):
            yield node, mask


def _name(call: ast.Call) -> str:
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _of_triton(func: ast.expr, namespace: Mapping[str, Any]) -> bool:
    """Say whether a name leads to triton.language, and not to a method of a pointer or of a descriptor."""
    if isinstance(func, ast.Name):
        return str(getattr(namespace.get(func.id), "__module__", "")).startswith("triton.")
    value = func.value if isinstance(func, ast.Attribute) else None
    while isinstance(value, ast.Attribute):
        value = value.value
    found = namespace.get(value.id) if isinstance(value, ast.Name) else None
    return isinstance(found, ModuleType) and found.__name__.partition(".")[0] == "triton"


def _put(call: ast.Call, old: ast.expr, new: ast.expr) -> None:
    """Replace an argument of a call."""
    call.args = [new if item is old else item for item in call.args]
    for keyword in call.keywords:
        keyword.value = new if keyword.value is old else keyword.value


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=list(args), keywords=[])


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."
