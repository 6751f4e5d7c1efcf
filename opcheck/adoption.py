"""Put into the registry what exists already, as it is: other people's operators, autograd functions, callables."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from opcheck.core.spec import Place
from opcheck.errors import RegistrationError
from opcheck.registry import described, enter, promote, refuse_uncallable
from opcheck.run.targets import Target, looked_at, mutating

__all__ = ["adopt"]

_Op = TypeVar("_Op")
_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")


def adopt(
    op: _Op,
    *,
    reference: Callable[..., Any],
    golden: Callable[..., Any] | None = None,
    samples: Callable[..., Any],
    name: str | None = None,
    mutates_args: Iterable[str] = (),
    terms: Callable[..., Any] | None = None,
) -> _Op:
    """Register something that exists, as it is, with what it is to be compared with.

    It is then listed, linted, audited and gated as a registered op is, and declared in registry.toml under its name.
    What cannot be checked of it (a plain callable has no schema, an operator may have no fake) is said in the report
    under "not covered".

    Args:
        op: An operator (`torch.ops.ns.name`, one of its overloads, or its name `"ns::name"`), a `CustomOpDef` or
            `triton_op`, an `autograd.Function` or its `apply`, or any callable: a function, a partial, a module.
        reference, golden, samples, terms: As `opcheck.register` takes them.
        name: Name in the registry, `"ns::name"`; an operator's own, or `package::function`, unless given.
        mutates_args: Parameters that a plain callable writes into; an operator's schema says it.

    Returns:
        `op`, unchanged.

    Raises:
        RegistrationError: It cannot be called, is a packet of several overloads, has no name, is its own reference, or
            its name is taken.
    """
    caller = sys._getframe(1)
    place = Place(file=caller.f_code.co_filename, line=caller.f_lineno)
    try:
        found = mutating(looked_at(op), mutates_args)
        chosen = _named(name, found)
        refuse_uncallable(chosen, reference=reference, samples=samples, golden=golden, terms=terms)
        _refuse_itself(chosen, op, found, reference=reference, golden=golden)
    except RegistrationError as error:
        raise RegistrationError(f"{place}: {error}") from None
    enter(
        replace(
            described(found, chosen),
            reference=reference,
            golden=golden or promote(reference),
            samples=samples,
            terms=terms,
            promoted=golden is None,
            subject=op,
            module=str(caller.f_globals.get("__name__", "")),
            qualname=f"adopt {found.name or chosen}",
            place=place,
        )
    )
    return op


def _named(name: str | None, found: Target) -> str:
    """Return the name in the registry."""
    chosen = name or found.name
    if not chosen:
        raise RegistrationError("what is adopted has no name of its own; give one, name='namespace::op'")
    if not _NAME.fullmatch(str(chosen)):
        raise RegistrationError(f"{chosen!r} is not an op name; it should read namespace::op, two Python identifiers")
    return chosen


def _refuse_itself(name: str, op: Any, found: Target, **roles: Any) -> None:
    """Refuse a reference or golden that is what is adopted: whatever it gives would then be right."""
    own = {id(item) for item in (op, found.call, found.op, getattr(op, "apply", None)) if item is not None}
    for role, value in roles.items():
        if id(value) in own or (value is not None and value in (op, getattr(op, "apply", op))):
            raise RegistrationError(f"{name}: {role} is the op itself, which proves nothing; write its formula")
