"""What the registry holds for one op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

ArgumentKind = Literal["tensor", "tensor list", "value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of source: where something was registered or went wrong."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One parameter of an op's schema.

    Attributes:
        kind: Whether it is a tensor (optional or not), a list of tensors, or a plain value.
        mutated: Whether the op writes into it.
        default: `repr` of its default, empty where it has none.
    """

    name: str
    kind: ArgumentKind
    mutated: bool = False
    keyword_only: bool = False
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSpec:
    """Everything that the decorator was told about an op.

    Attributes:
        name: Qualified name, `"ns::name"`.
        target: What is audited: called with the sample's arguments, differentiable by autograd.
        reference: Eager, same dtypes in and out as the target.
        golden: Eager, FP64 in and out; the oracle.
        samples: Draws the arguments of a case.
        terms: FP64 terms of the sum that each output element is, for the condition number; None where not given.
        promoted: `golden` was made from `reference` by `opcheck.promote`.
        arguments: The schema's parameters, in order; empty where the op's schema is unknown.
        schema: The schema as torch prints it.
        op: The `torch.library` object that `torch.library.opcheck` takes; None for a plain callable.
        subject: What was adopted, as it was given.
        operator: Name under which torch's dispatcher knows it; empty for a plain callable.
        fake: Whether it is to run on fake tensors; an adopted op that has no fake is not asked to.
        not_covered: What cannot be checked of it, as sentences for the report.
        no_grad: Inputs that never require a gradient while it runs; unless said otherwise any may.
        tags: Names of the op's torch tags.
        module, qualname, place: Where the author's function stands.
    """

    name: str
    target: Callable[..., Any]
    reference: Callable[..., Any]
    golden: Callable[..., Any]
    samples: Callable[..., Any]
    terms: Callable[..., Any] | None = None
    promoted: bool = False
    arguments: tuple[Argument, ...] = ()
    schema: str = ""
    op: Any = None
    subject: Any = None
    operator: str = ""
    fake: bool = True
    not_covered: tuple[str, ...] = ()
    no_grad: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()
    module: str = ""
    qualname: str = ""
    place: Place = Place(file="<unknown>", line=0)

    @property
    def mutated(self) -> tuple[str, ...]:
        """The names of the arguments that the op writes into."""
        return tuple(argument.name for argument in self.arguments if argument.mutated)

    @property
    def dispatched(self) -> str:
        """The name by which a call of the op is told from others while it runs."""
        return self.operator or self.name
