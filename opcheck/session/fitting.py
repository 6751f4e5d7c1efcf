"""Does a case that the user wrote fit the op and this audit?"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from opcheck.core.case import LEADING, Case
from opcheck.core.families import FAMILIES, family
from opcheck.core.layouts import GRADIENT
from opcheck.core.policy import DTYPES, Contract
from opcheck.core.variants import config_of, programs_of, variant_values
from opcheck.errors import BadCase

BACKENDS = ("cpu", "cuda")


def fit(case: Case, contract: Contract, *, backend: str, arguments: Collection[str]) -> None:
    """Refuse a case that the contract does not allow.

    Args:
        backend: The backend of this audit.
        arguments: Names of the op's parameters.

    Raises:
        BadCase: A field names what the op does not have, or holds a value outside of its contract.
    """
    for fault in _faults(case, contract, backend, arguments):
        raise BadCase(f"{case.id}: {fault}")


def _faults(case: Case, contract: Contract, backend: str, arguments: Collection[str]) -> Iterator[str]:
    if case.backend not in BACKENDS:
        yield f"{case.backend!r} is not a backend; it should be one of {', '.join(BACKENDS)}"
    if case.backend != backend:
        yield f"this audit runs on {backend}; call it with --backend {case.backend}"
    yield from _wrong_dtype(case, contract, arguments)
    yield from _wrong_dims(case, contract)
    if family(case.values) is None:
        yield f"{case.values!r} is not a family of values; there are {', '.join(item.name for item in FAMILIES)}"
    config_of(case.variant)
    if programs_of(case.variant) is not None and case.backend != "cpu":
        yield "programs can be left out of interpreted launches only, on cpu"
    laid_out = [name for name in case.layouts if not name.startswith(GRADIENT)]
    named = {"variant": tuple(variant_values(case.variant)), "grads": case.wanted, "layout": laid_out}
    for what, names in named.items():
        yield from _unknown(what, names, arguments)


def _wrong_dtype(case: Case, contract: Contract, arguments: Collection[str]) -> Iterator[str]:
    for dtype in case.dtypes:
        if dtype not in DTYPES:
            yield f"{dtype!r} is not an element type; it should be one of {', '.join(DTYPES)}"
    if "=" in case.dtype:
        parts = dict(item.split("=", 1) for item in case.dtype.split(",") if "=" in item)
        yield from _unknown("dtype", tuple(parts), arguments)
        promised = parts in [dict(item) for item in contract.mixed]
    else:
        # An element type that is declared unsupported is to be refused, so it may be tried.
        promised = case.dtype in (*contract.dtypes, *(item.dtype for item in contract.unsupported))
    if not promised:
        yield f"the contract does not promise {case.dtype}; it promises {', '.join(_promises(contract))}"


def _promises(contract: Contract) -> Iterator[str]:
    yield from contract.dtypes
    yield from (",".join(f"{name}={dtype}" for name, dtype in item.items()) for item in contract.mixed)


def _wrong_dims(case: Case, contract: Contract) -> Iterator[str]:
    leading = [name for name in case.dims if name.startswith(LEADING)]
    named = [name for name in case.dims if name not in leading]
    expected = [name for name in contract.dims if name != LEADING]
    if set(named) != set(expected):
        yield f"its dims are {', '.join(named) or 'none'}; the contract's are {', '.join(expected) or 'none'}"
    if leading and LEADING not in contract.dims:
        yield f"it has leading dimensions, and the contract's dims do not begin with {LEADING}"
    for name in named:
        yield from _wrong_size(name, case.dims[name], contract)


def _wrong_size(name: str, size: int, contract: Contract) -> Iterator[str]:
    """Say which limit excludes a size; an empty dimension is legal or must raise, so it may always be tried."""
    if not size:
        return
    smallest, largest = contract.smallest.get(name, 1), contract.largest.get(name, size)
    sizes, multiple = contract.sizes.get(name, (size,)), contract.multiple.get(name, 1)
    if size not in sizes:
        yield f"{name} is {size}; the contract's sizes are {', '.join(map(str, sizes))}"
    if size < smallest:
        yield f"{name} is {size}; the contract's smallest is {smallest}"
    if size > largest:
        yield f"{name} is {size}; the contract's largest is {largest}"
    if size % multiple:
        yield f"{name} is {size}; it should be a multiple of {multiple}"


def _unknown(what: str, names: Collection[str], arguments: Collection[str]) -> Iterator[str]:
    for name in names:
        if arguments and name.partition("[")[0] not in arguments:
            yield f"its {what} names {name!r}, which the op does not take; it takes {', '.join(arguments)}"
