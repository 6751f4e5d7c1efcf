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

from opcheck.core.spec import Argument, ArgumentKind, OpSpec, Place
from opcheck.errors import RegistrationError, UnknownOp
from opcheck.run.oracle import promote

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
    _refuse_uncallable(name, reference=reference, samples=samples, golden=golden, terms=terms)

    def decorate(function: Callable[..., Any]) -> CustomOpDef:
        if not inspect.isfunction(function):
            raise RegistrationError(
                f"{name}: registered is a {type(function).__name__}; it should be a function with annotations, "
                f"def {name.rpartition('::')[2]}(x: torch.Tensor) -> torch.Tensor"
            )
        place = _place(function)
        _refuse_taken(name, function, place)
        mutated = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args or ())
        inferred = schema or _infer(name, function, mutated, place)
        try:
            op = torch.library.custom_op(
                name, function, mutates_args=mutated, device_types=device_types, schema=inferred, tags=tuple(tags)
            )
        except (ValueError, RuntimeError, TypeError) as error:
            raise RegistrationError(f"{place}: {name} cannot be registered: {_reason(error)}") from error
        _SPECS[name] = replace(
            described(op, name),
            reference=reference,
            golden=golden or promote(reference),
            samples=samples,
            terms=terms,
            promoted=golden is None,
            tags=tuple(str(tag).rpartition(".")[2] for tag in tags),
            module=function.__module__,
            qualname=function.__qualname__,
            place=place,
        )
        return op

    return decorate


def described(target: Callable[..., Any], name: str) -> OpSpec:
    """Return what can be told of a target by looking at it: schema and arguments of a custom op, place of a function.

    Its reference, golden and samples are still to be given.
    """
    schema = target._opoverload._schema if isinstance(target, CustomOpDef) else None

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise RegistrationError(f"{name}: no reference, golden or samples were given")

    return OpSpec(
        name=name,
        target=target,
        reference=missing,
        golden=missing,
        samples=missing,
        arguments=_arguments(schema) if schema is not None else (),
        schema=str(schema) if schema is not None else "",
        op=target if schema is not None else None,
        place=_place(target._init_fn if isinstance(target, CustomOpDef) else target),
    )


def spec(op: Any) -> OpSpec:
    """Return what was registered for an op, by its name or the object that `register` returned.

    Raises:
        UnknownOp: Nothing of that name is registered; the message names close matches.
    """
    name = op if isinstance(op, str) else getattr(op, "_qualname", str(op))
    if name in _SPECS:
        return _SPECS[name]
    close = difflib.get_close_matches(name, _SPECS, n=1)
    hint = f"; did you mean {close[0]}?" if close else f"; registered are {', '.join(sorted(_SPECS)) or 'none'}"
    raise UnknownOp(f"{name!r} is not a registered op{hint}")


def registered() -> dict[str, OpSpec]:
    """Return every registered op by name, sorted."""
    return dict(sorted(_SPECS.items()))


def _refuse_uncallable(name: str, **given: Any) -> None:
    for role, value in given.items():
        optional = role in ("golden", "terms")
        if not callable(value) and not (optional and value is None):
            raise RegistrationError(f"{name}: {role} is {value!r}; it should be a function{' or None' * optional}")


def _refuse_taken(name: str, function: Callable[..., Any], place: Place) -> None:
    """Refuse a second registration; the same function again (a reloaded module, a rerun cell) replaces the first."""
    before = _SPECS.get(name)
    if before is not None and (before.module, before.qualname) != (function.__module__, function.__qualname__):
        raise RegistrationError(f"{place}: {name} is already registered at {before.place}; rename one of them")
    namespace, _, op = name.partition("::")
    if before is None and hasattr(getattr(torch.ops, namespace), op):
        raise RegistrationError(f"{place}: torch.ops.{namespace}.{op} exists already; give the op another name")


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


def _place(function: Callable[..., Any]) -> Place:
    code = getattr(inspect.unwrap(function), "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return Place(file=code.co_filename, line=code.co_firstlineno) if code else Place(file="<unknown>", line=0)


def _arguments(schema: Any) -> tuple[Argument, ...]:
    found = []
    for item in schema.arguments:
        text = str(item.type)
        single: ArgumentKind = "tensor" if "Tensor" in text else "value"
        kind = "tensor list" if "Tensor" in text and "List[" in text else single
        found.append(
            Argument(
                name=item.name,
                kind=kind,
                mutated=bool(item.alias_info and item.alias_info.is_write),
                keyword_only=item.kwarg_only,
                default=repr(item.default_value) if item.has_default_value() else "",
            )
        )
    return tuple(found)
