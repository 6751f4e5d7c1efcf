"""What is never written, or read behind its end, is visibly wrong."""

import pytest
import torch

from opcheck.run.layouts import laid_out
from opcheck.run.poison import LARGE, NAN, poisoned

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_uninitialised_floats_are_nan_or_large(dtype):
    with poisoned(NAN):
        assert torch.empty(3, dtype=dtype).double().isnan().all()
    with poisoned(LARGE):
        large = torch.empty(3, dtype=dtype).double()
    assert large.isfinite().all()
    assert (large >= 256).all()


def test_uninitialised_integers_are_minus_one_or_large():
    with poisoned(NAN):
        assert torch.empty(2, dtype=torch.int32).tolist() == [-1, -1]
    with poisoned(LARGE):
        assert torch.empty(2, dtype=torch.int32).tolist() == [0x7B7B7B7B] * 2


def test_the_factories_come_back():
    before = torch.empty
    with poisoned(LARGE):
        assert torch.empty is not before
    assert torch.empty is before


@pytest.mark.parametrize("gradient", [True, False])
def test_an_expanded_tensor_does_not_find_its_number_again_behind_it(gradient):
    drawn = torch.full((5,), 2.5)
    expanded = laid_out("expanded", drawn, gradient=gradient)
    assert expanded.stride() == (0,)
    assert expanded.tolist() == drawn.tolist()
    behind = expanded.as_strided((2,), (1,), expanded.storage_offset())
    assert behind[0] == 2.5
    assert behind[1].isnan()
