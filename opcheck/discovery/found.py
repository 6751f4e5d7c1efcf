"""What a package has: operators, autograd functions, functions that launch kernels, and the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter as its source or schema writes it; `default` is empty where it has none."""

    name: str
    type: str = ""
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What torch's dispatcher knows since the package was imported.

    Attributes:
        kernels: The dispatch keys for which there are kernels.
        fake, autograd: Whether there is a fake, and a backward.
        body: `module.qualname` of the Python function that it is, empty where it is C++ or unknown.
        module: What to import to have it.
        launches: Kernels that its body reaches, by name; empty, too, where that is not known.
    """

    name: str
    schema: str
    parameters: tuple[Parameter, ...] = ()
    kernels: tuple[str, ...] = ()
    fake: bool = False
    autograd: bool = False
    body: str = ""
    module: str = ""
    launches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Callable:
    """An autograd.Function, or a function that launches a kernel itself: what can be adopted though it is no operator.

    Attributes:
        name: `module.qualname`.
        place: File within the package, and line.
        launches: Kernels that it reaches, by name.
    """

    name: str
    kind: Literal["autograd", "function"]
    place: str
    parameters: tuple[Parameter, ...] = ()
    launches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A function under `@triton.jit` that is launched, and not only called by other kernels."""

    name: str
    place: str
    tuned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All of it.

    Attributes:
        distribution: The package's distribution with its version, empty where it has none.
        problems: What could not be looked at, as sentences.
    """

    package: str
    distribution: str = ""
    operators: tuple[Operator, ...] = ()
    callables: tuple[Callable, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    problems: tuple[str, ...] = ()
