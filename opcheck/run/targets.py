"""Look at what is to be audited, whatever it is: how it is called, its schema, and what cannot be checked of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef
from torch._ops import OpOverload, OpOverloadPacket

from opcheck.core.spec import Argument, ArgumentKind, Place
from opcheck.errors import RegistrationError

NOWHERE = Place(file="<unknown>", line=0)
_IMPLICIT = "CompositeImplicitAutograd"
_ANYWHERE = (_IMPLICIT, "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
_PLAIN = "torch.library.opcheck, fakes and torch.compile: the target is a plain callable, not a torch.library op"
_NO_FAKE = "fakes, test_faketensor, test_aot_dispatch_dynamic and torch.compile: the op has no fake"
_COMPOSITE = "a reference or golden that calls the op itself: the op is composite, and a call of it is not seen"
_UNNAMED = "argument names: the target does not tell them; its tensors are called arg 0, arg 1, ... by position"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is known of something that can be called.

    Attributes:
        call: What to call with a sample's arguments.
        op: The torch.library object, None where it is none.
        name: The name that it goes by, `ns::op`; empty where it has none.
        arguments: Its parameters; empty where it does not tell them.
        fake: Whether it can be run on fake tensors.
        not_covered: What cannot be checked of it, as sentences.
    """

    call: Callable[..., Any]
    op: CustomOpDef | OpOverload | None = None
    name: str = ""
    schema: str = ""
    arguments: tuple[Argument, ...] = ()
    place: Place = NOWHERE
    fake: bool = False
    not_covered: tuple[str, ...] = ()


def looked_at(target: Any) -> Target:
    """Return what there is to know of a target.

    Raises:
        RegistrationError: It cannot be called, or is a packet of overloads of which one must be chosen.
    """
    if isinstance(target, CustomOpDef | OpOverload | OpOverloadPacket):
        return _operator(target if not isinstance(target, OpOverloadPacket) else only_overload(target))
    if isinstance(target, str):
        return _operator(overload_named(target))
    function = _autograd_function(target)
    if function is not None:
        return _differentiable(function)
    if isinstance(target, torch.nn.Module):
        return _module(target)
    if not callable(target):
        raise RegistrationError(
            f"{target!r} cannot be called; give a torch.ops operator, an autograd.Function or a function"
        )
    return _callable(target)


def only_overload(packet: OpOverloadPacket) -> OpOverload:
    """Return the overload that is meant by a packet.

    Raises:
        RegistrationError: It has several and none is called default.
    """
    names: list[str] = packet.overloads()  # type: ignore[no-untyped-call]
    if "default" in names or len(names) == 1:
        found: OpOverload = getattr(packet, "default" if "default" in names else names[0])
        return found
    raise RegistrationError(
        f"torch.ops.{packet} has the overloads {', '.join(names)}; give one of them, torch.ops.{packet}.{names[0]}"
    )


def overload_named(name: str) -> OpOverload:
    """Return the operator called `ns::op` or `ns::op.overload`.

    Raises:
        RegistrationError: torch knows none of that name.
    """
    namespace, _, rest = name.partition("::")
    op, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace, None), op, None) if namespace and op else None
    found = packet if not isinstance(packet, OpOverloadPacket) else getattr(packet, overload, None) if overload else (
        only_overload(packet)
    )  # fmt: skip
    if not isinstance(found, OpOverload):
        raise RegistrationError(f"torch knows no operator {name!r}; import the package that registers it first")
    return found


def name_of(op: OpOverload) -> str:
    """Return `ns::op`, or `ns::op.overload` where it is not the default one."""
    name: str = op.name()  # type: ignore[no-untyped-call]
    return name


def has_kernel(op: CustomOpDef | OpOverload, device: str) -> bool:
    """Say whether an operator can run on a kind of device: by a kernel for it, or by other operators."""
    overload = op._opoverload if isinstance(op, CustomOpDef) else op
    if not any(_has(overload, key) for key in (device.upper(), *_ANYWHERE)):
        return False
    # Every custom op has a kernel that dispatches by device in Python; which devices it knows stands there.
    definition = op if isinstance(op, CustomOpDef) else _definition_of(op)
    return definition is None or None in definition._backend_fns or device in definition._backend_fns


def signature_of(function: Any, *, skip: int = 0) -> inspect.Signature | None:
    """Return the parameters of something callable but for the first `skip`, None where it does not tell them all."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters = list(signature.parameters.values())[skip:]
    if any(item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD) for item in parameters):
        return None
    return signature.replace(parameters=parameters)


def place_of(function: Any) -> Place:
    """Return where the code of something callable stands."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return Place(file=code.co_filename, line=code.co_firstlineno) if code else NOWHERE


def mutating(target: Target, names: Iterable[str]) -> Target:
    """Return a callable of which it is said which parameters it writes into.

    Raises:
        RegistrationError: It has a schema, which says so, or no such parameters.
    """
    wanted = tuple(names)
    if not wanted:
        return target
    if target.op is not None:
        raise RegistrationError(f"{target.name}: its schema says what it mutates; leave out mutates_args")
    known = [item.name for item in target.arguments]
    for name in wanted:
        if name not in known:
            raise RegistrationError(
                f"mutates_args names {name!r}; the parameters are {', '.join(known) or 'not told by the target'}"
            )
    return replace(
        target,
        arguments=tuple(replace(item, mutated=item.mutated or item.name in wanted) for item in target.arguments),
    )


def _operator(op: CustomOpDef | OpOverload) -> Target:
    overload = op._opoverload if isinstance(op, CustomOpDef) else op
    definition = op if isinstance(op, CustomOpDef) else _definition_of(op)
    fake = definition is None or definition._abstract_fn is not None
    if definition is None and not any(_has(overload, key) for key in _ANYWHERE):
        fake = _fakes(overload)
    return Target(
        call=op,
        op=op,
        name=name_of(overload),
        schema=str(overload._schema),
        arguments=schema_arguments(overload._schema),
        place=_place_of_definition(definition) if definition is not None else NOWHERE,
        fake=fake,
        not_covered=(*([] if fake else [_NO_FAKE]), *([_COMPOSITE] if _has(overload, _IMPLICIT) else [])),
    )


def _place_of_definition(definition: CustomOpDef) -> Place:
    # The body of a triton_op is torch's own wrapper; the author's function is its fake, too.
    wrapped = definition._init_fn.__module__ == "torch._library.triton"
    return place_of(definition._abstract_fn if wrapped else definition._init_fn)


def _has(op: OpOverload, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name_of(op), key))


def _fakes(op: OpOverload) -> bool:
    from torch._library import simple_registry

    if op.namespace in ("aten", "prims") or _has(op, "Meta"):
        return True
    return simple_registry.singleton.find(op._schema.name).fake_impl.kernel is not None


def _definition_of(op: OpOverload) -> CustomOpDef | None:
    from torch._library.custom_ops import OPDEFS

    found: CustomOpDef | None = OPDEFS.get(op._schema.name)
    return found


def _autograd_function(target: Any) -> type[torch.autograd.Function] | None:
    """Return the class where the target is an autograd.Function or the `apply` of one."""
    owner = getattr(target, "__self__", None) if getattr(target, "__name__", "") == "apply" else target
    return owner if isinstance(owner, type) and issubclass(owner, torch.autograd.Function) else None


def _differentiable(function: type[torch.autograd.Function]) -> Target:
    """An autograd.Function: `apply` takes no keywords and fills in no default, so that is done here."""
    plain = torch.autograd.Function.setup_context
    skip = 1 if function.setup_context is plain else 0  # with a setup_context of its own, forward takes no ctx
    signature = signature_of(function.forward, skip=skip)

    def call(*args: Any, **kwargs: Any) -> Any:
        if signature is not None:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = (*bound.args, *bound.kwargs.values()), {}
        return function.apply(*args, **kwargs)  # type: ignore[no-untyped-call]

    found = _told(call, signature, function)
    return replace(found, name=_qualified(function), place=place_of(function.forward))


def _module(module: torch.nn.Module) -> Target:
    found = _told(module, signature_of(module.forward), type(module))
    held = [name for name, value in module.named_parameters() if value.requires_grad]
    missing = f"gradients of the module's own parameters ({', '.join(held)}): only its arguments are inputs"
    return replace(
        found,
        name=_qualified(type(module)),
        place=place_of(type(module).forward),
        not_covered=(*found.not_covered, *([missing] if held else [])),
    )


def _callable(function: Callable[..., Any]) -> Target:
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    found = _told(function, signature_of(function), inner)
    return replace(found, name=_qualified(inner), place=place_of(function))


def _told(call: Callable[..., Any], signature: inspect.Signature | None, function: Any) -> Target:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    unnamed = () if signature is not None else (_UNNAMED,)
    if signature is None:
        return Target(call=call, not_covered=(_PLAIN, *unnamed))
    return Target(
        call=call,
        schema=f"{name}{signature}",
        arguments=tuple(_parameter(item) for item in signature.parameters.values()),
        not_covered=(_PLAIN,),
    )


def _parameter(item: inspect.Parameter) -> Argument:
    default = "" if item.default is item.empty else repr(item.default)
    return Argument(name=item.name, kind="value", keyword_only=item.kind is item.KEYWORD_ONLY, default=default)


def _qualified(function: Any) -> str:
    """Return `package::name` for what a module holds under a name, empty for a lambda or a local function."""
    name = getattr(function, "__name__", "")
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    return f"{package}::{name}" if name.isidentifier() and package.isidentifier() else ""


def schema_arguments(schema: Any) -> tuple[Argument, ...]:
    """Return the parameters of a torch schema."""
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
