"""What a script expects of a quantization: the nearest of the grid, the reference's on a tie, NaN in its place."""

from __future__ import annotations

import math

import pytest
import torch

from opcheck.core.policy import Contract
from opcheck.repro.expected import Oracle, expected

CONTRACT = Contract(
    name="ops::example", kind="quantize", dtypes=("float32",), dims=("n",), overflow="saturate", no_grad={"x": "rounds"}
)
GOLDEN = torch.tensor([2.25, 8.5, 1e9, math.nan], dtype=torch.float64)
REFERENCE = {torch.int8: (2, 8, 127, 0), torch.float8_e4m3fn: (2.25, 8.0, 448.0, math.nan)}


def accepts(dtype, answer, steady=None):
    """Whether a script takes these four numbers for right; as its own lines, in `parts.NEAR`, do."""
    reference = torch.tensor(REFERENCE[dtype]).to(dtype)
    oracle = Oracle(
        reference=reference, golden=GOLDEN, contract=CONTRACT, numbers={}, limits=None, void=False, steady=steady
    )
    wanted = expected("structure", oracle, {}, "out")
    got = torch.tensor(answer).to(dtype).double()
    near = (got - wanted.values).abs() <= wanted.allowed
    right = near | (got == wanted.values) | (got.isnan() & wanted.values.isnan()) | ~wanted.allowed.isfinite()
    return right.tolist()


@pytest.mark.parametrize("dtype", list(REFERENCE))
def test_the_reference_is_right(dtype):
    assert all(accepts(dtype, REFERENCE[dtype]))


@pytest.mark.parametrize(
    ("dtype", "answer", "right"),
    [
        (torch.int8, (3, 9, -128, 77), [False, False, False, True]),
        (torch.float8_e4m3fn, (2.5, 9.0, 416.0, 1.0), [False, False, False, False]),
    ],
)
def test_every_other_number_is_wrong(dtype, answer, right):
    assert accepts(dtype, answer) == right


@pytest.mark.parametrize("dtype", list(REFERENCE))
def test_what_is_no_tie_in_float32_goes_either_way(dtype):
    other = (*REFERENCE[dtype][:1], 9, *REFERENCE[dtype][2:])
    assert all(accepts(dtype, other, steady=GOLDEN * (1 + 2.0**-22)))
    assert accepts(dtype, other, steady=GOLDEN)[1] is False
