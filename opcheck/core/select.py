"""Choose ops by name and glob, and cases by a `-k` expression."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from opcheck.errors import OpcheckError, UnknownOp


def select_ops(wanted: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the known ops that any of the names or globs matches, in order; all of them where none is given.

    Raises:
        UnknownOp: A name or glob matches nothing.
    """
    if not wanted:
        return tuple(known)
    chosen: dict[str, None] = {}
    for pattern in wanted:
        matches = [name for name in known if fnmatchcase(name, pattern)]
        if not matches:
            close = difflib.get_close_matches(pattern, known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known) or 'none'}"
            raise UnknownOp(f"no op is called {pattern!r}; {hint}")
        chosen.update(dict.fromkeys(matches))
    return tuple(chosen)


def matcher(expression: str) -> Callable[[str], bool]:
    """Compile a `-k` expression: words that must occur (case-insensitive), with `and`, `or`, `not` and parentheses.

    Raises:
        OpcheckError: The expression cannot be read.
    """
    if not expression.strip():
        return lambda text: True
    tokens = re.findall(r"[()]|[^\s()]+", expression)
    parse = _Parser(tokens, expression)
    found = parse.either()
    if parse.tokens:
        raise parse.error()
    return lambda text: found(text.lower())


class _Parser:
    """Recursive descent over `or`, `and`, `not`, parentheses and words."""

    def __init__(self, tokens: list[str], expression: str) -> None:
        self.tokens, self.expression = tokens, expression

    def either(self) -> Callable[[str], bool]:
        left = self.both()
        while self._take("or"):
            left = _or(left, self.both())
        return left

    def both(self) -> Callable[[str], bool]:
        left = self.word()
        while self._take("and"):
            left = _and(left, self.word())
        return left

    def word(self) -> Callable[[str], bool]:
        if self._take("not"):
            inner = self.word()
            return lambda text: not inner(text)
        if self._take("("):
            inner = self.either()
            if not self._take(")"):
                raise self.error()
            return inner
        if not self.tokens or self.tokens[0].lower() in ("and", "or", ")"):
            raise self.error()
        wanted = self.tokens.pop(0).lower()
        return lambda text: wanted in text

    def error(self) -> OpcheckError:
        near = repr(self.tokens[0]) if self.tokens else "its end"
        return OpcheckError(f"-k {self.expression!r} cannot be read near {near}; it takes words, and, or, not, ( )")

    def _take(self, token: str) -> bool:
        if self.tokens and self.tokens[0].lower() == token:
            self.tokens.pop(0)
            return True
        return False


def _or(left: Callable[[str], bool], right: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda text: left(text) or right(text)


def _and(left: Callable[[str], bool], right: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda text: left(text) and right(text)
