"""The shape that kernels are built for: aligned, with production's reduced sizes, small enough to be drawn."""

import math
from typing import Any

from opcheck.core.policy import Contract
from opcheck.core.shapes import BUILT_ELEMENTS, in_earnest


def contract(**keys: Any) -> Contract:
    given: dict[str, Any] = {"kind": "normalization", "dims": ("rows", "cols"), "reduces": ("cols",), **keys}
    return Contract(name="ops::f", dtypes=("float32",), **given)


def test_what_is_reduced_is_as_long_as_in_production():
    assert dict(in_earnest(contract(production=({"rows": 16384, "cols": 8192},)))) == {"rows": 256, "cols": 4096}
    assert dict(in_earnest(contract(production=({"rows": 4096, "cols": 4096},)))) == {"rows": 256, "cols": 4096}
    assert dict(in_earnest(contract(production=({"rows": 64, "cols": 128},)))) == {"rows": 64, "cols": 128}


def test_sizes_are_multiples_of_16_without_production_too():
    found = in_earnest(contract(dims=("batch", "rows", "cols")))
    assert all(size % 16 == 0 for size in found.values())
    assert math.prod(found.values()) <= BUILT_ELEMENTS


def test_sizes_are_legal():
    found = in_earnest(contract(largest={"rows": 9}, sizes={"cols": (64, 96)}))
    assert dict(found) == {"rows": 9, "cols": 96}


def test_sizes_that_may_not_be_smaller_end_the_search():
    assert dict(in_earnest(contract(smallest={"cols": 1 << 21}))) == {"rows": 16, "cols": 1 << 21}
