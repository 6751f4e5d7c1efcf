"""The registry: a decorator that makes a torch.library custom op and remembers what it must equal."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch._library.custom_ops import CustomOpDef

from opcheck.core.spec import OpSpec, Place
from opcheck.errors import RegistrationError, UnknownOp
from opcheck.run.oracle import promote
from opcheck.run.targets import Target, looked_at, place_of

__all__ = ["promote", "register", "registered", "spec"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_SPECS: dict[str, OpSpec] = {}
_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")

# What torch says when it refuses a signature, and the mend; the first that occurs counts.
_REFUSALS: tuple[tuple[str, str], ...] = (
    ("must have a type annotation", "annotate every parameter and the return, for example x: torch.Tensor"),
    ("No return type annotation", "annotate the return, for example -> torch.Tensor"),
    ("Return has unsupported type", "return torch.Tensor, a tuple or list of them, int, float, bool or None"),
    ("We do not support Tuple inputs", "take list[torch.Tensor] in place of a tuple"),
    ("has unsupported type", "take torch.Tensor, list[torch.Tensor], int, float, bool, str, torch.dtype or Optional"),
    ("Unsupported type annotation", "import what the annotations name at the top of the module"),
    ("varargs", "name every parameter: custom ops take no *args, **kwargs or positional-only parameters"),
    ("kwarg-only", "a tensor may not be keyword-only: move it in front of the *"),
    ("mutates_args", "mutates_args names parameters of the function, or is the string 'unknown'"),
)


def register(
    name: str,
    *,
    reference: Callable[..., Any],
    golden: Callable[..., Any] | None = None,
    samples: Callable[..., Any],
    mutates_args: str | Iterable[str] = (),
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Iterable[torch.Tag] = (),
    terms: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], CustomOpDef]:
    """Register a kernel as a custom op, with what it is to be compared with.

    Args:
        name: Qualified name, `"namespace::op"`.
        reference: Eager PyTorch of the same formula, in the same element types as the kernel.
        golden: The same formula in FP64; it receives floating-point inputs upcast to FP64 and must not narrow them.
            None has opcheck promote the reference.
        samples: Takes an `opcheck.Case` and returns an `opcheck.Sample` of arguments.
        mutates_args, device_types, schema, tags: As `torch.library.custom_op` takes them.
        terms: FP64 terms whose sum each output element is; the last dimension runs over the terms.

    Returns:
        A decorator that returns torch's own `CustomOpDef`: `.register_fake`, `.register_autograd` and the rest of
        torch.library work on it unchanged.

    Raises:
        RegistrationError: The name is malformed or taken, or torch cannot take the function's signature.
    """
    if not _NAME.fullmatch(str(name)):
        raise RegistrationError(f"{name!r} is not an op name; it should read namespace::op, two Python identifiers")
    refuse_uncallable(name, reference=reference, samples=samples, golden=golden, terms=terms)

    def decorate(function: Callable[..., Any]) -> CustomOpDef:
        if not inspect.isfunction(function):
            raise RegistrationError(
                f"{name}: registered is a {type(function).__name__}; it should be a function with annotations, "
                f"def {name.rpartition('::')[2]}(x: torch.Tensor) -> torch.Tensor"
            )
        place = place_of(function)
        refuse_taken(name, (function.__module__, function.__qualname__), place)
        _refuse_existing(name, place)
        mutated = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args or ())
        inferred = schema or _infer(name, function, mutated, place)
        try:
            op = torch.library.custom_op(
                name, function, mutates_args=mutated, device_types=device_types, schema=inferred, tags=tuple(tags)
            )
        except (ValueError, RuntimeError, TypeError) as error:
            raise RegistrationError(f"{place}: {name} cannot be registered: {_reason(error)}") from error
        entry = replace(
            described(op, name),
            fake=True,  # it may be registered later; where it is not, that is a finding
            not_covered=(),
            reference=reference,
            golden=golden or promote(reference),
            samples=samples,
            terms=terms,
            promoted=golden is None,
            tags=tuple(str(tag).rpartition(".")[2] for tag in tags),
            subject=op,
            module=function.__module__,
            qualname=function.__qualname__,
            place=place,
        )
        enter(entry)
        return op

    return decorate


def described(target: Any, name: str) -> OpSpec:
    """Return what can be told of a target by looking at it; its reference, golden and samples are still to be given.

    Raises:
        RegistrationError: It cannot be called.
    """
    found = target if isinstance(target, Target) else looked_at(target)

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise RegistrationError(f"{name}: no reference, golden or samples were given")

    return OpSpec(
        name=name,
        target=found.call,
        reference=missing,
        golden=missing,
        samples=missing,
        arguments=found.arguments,
        schema=found.schema,
        op=found.op,
        operator=found.name if found.op is not None else "",
        fake=found.fake,
        not_covered=found.not_covered,
        place=found.place,
    )


def spec(op: Any) -> OpSpec:
    """Return what was registered for an op, by its name, the object that `register` returned, or what was adopted.

    Raises:
        UnknownOp: Nothing of that name is registered; the message names close matches.
    """
    name = op if isinstance(op, str) else getattr(op, "_qualname", "")
    found = _SPECS.get(name) or next((item for item in _SPECS.values() if item.subject is op), None)
    if found is not None:
        return found
    name = name or str(op)
    close = difflib.get_close_matches(name, _SPECS, n=1)
    hint = f"; did you mean {close[0]}?" if close else f"; registered are {', '.join(sorted(_SPECS)) or 'none'}"
    raise UnknownOp(f"{name!r} is not a registered op{hint}")


def enter(entry: OpSpec) -> None:
    """Put an op into the registry; the same one again (a reloaded module, a rerun cell) replaces the first.

    Raises:
        RegistrationError: Another one has the name.
    """
    refuse_taken(entry.name, (entry.module, entry.qualname), entry.place)
    _SPECS[entry.name] = entry


def registered() -> dict[str, OpSpec]:
    """Return every registered op by name, sorted."""
    return dict(sorted(_SPECS.items()))


def refuse_uncallable(name: str, **given: Any) -> None:
    for role, value in given.items():
        optional = role in ("golden", "terms")
        if not callable(value) and not (optional and value is None):
            raise RegistrationError(f"{name}: {role} is {value!r}; it should be a function{' or None' * optional}")


def refuse_taken(name: str, identity: tuple[str, str], place: Place) -> None:
    """Refuse a name that something else in the registry has: another module, or another qualified name in it."""
    before = _SPECS.get(name)
    if before is not None and (before.module, before.qualname) != identity:
        raise RegistrationError(f"{place}: {name} is already registered at {before.place}; rename one of them")


def _refuse_existing(name: str, place: Place) -> None:
    """Refuse the name of an operator that torch has already, not through us."""
    namespace, _, op = name.partition("::")
    if name not in _SPECS and hasattr(getattr(torch.ops, namespace), op):
        raise RegistrationError(
            f"{place}: torch.ops.{namespace}.{op} exists already; give the op another name, or opcheck.adopt it"
        )


def _infer(name: str, function: Callable[..., Any], mutates_args: Any, place: Place) -> str:
    """Infer the schema from the author's own function: a wrapper around it would lose string annotations."""
    try:
        return torch.library.infer_schema(function, mutates_args=mutates_args)
    except (ValueError, TypeError, NameError, RuntimeError) as error:
        raise RegistrationError(f"{place}: {name} cannot be registered: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    text = re.sub(r"\s+", " ", str(error)).strip().rstrip(".")
    mend = next((mend for sign, mend in _REFUSALS if sign in text), "")
    longest = 160 if mend else 300
    short = text if len(text) <= longest else text[: longest - 4] + " ..."
    return f"{mend} (torch: {short})" if mend else short
