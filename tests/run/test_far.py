"""A far tensor has the values of a small one and offsets beyond 2^31 elements, and costs next to no memory."""

import os

import numpy as np
import pytest
import torch

from opcheck.backends import virtual
from opcheck.backends.interpreter.regions import Region
from opcheck.run.far import LIMIT, far, is_far
from opcheck.run.intact import Watch


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.bool])
@pytest.mark.parametrize(("shape", "along"), [((5, 7), 0), ((3, 7), 0), ((2, 7), 0), ((2, 3, 4), 1), ((3, 2, 4), 0)])
def test_one_stride_leads_beyond_31_bits(shape, along, dtype):
    value = torch.arange(np.prod(shape)).reshape(shape).to(dtype)
    found = far(value)
    assert torch.equal(found, value)
    assert found.dtype is dtype
    stride = found.stride(along)
    middle = 1 if shape[along] == 2 else max(2, (shape[along] - 1) // 2)
    assert (middle - 1) * stride < LIMIT <= middle * stride
    assert (stride < LIMIT) == (shape[along] > 2)
    others = [step for axis, step in enumerate(found.stride()) if axis != along]
    assert others == list(value.select(along, 0).contiguous().stride())
    assert is_far(found)
    assert not is_far(value)


@pytest.mark.parametrize("shape", [(), (7,), (1, 7), (0, 7), (3, 0)])
def test_what_has_no_rows_stays(shape):
    value = torch.ones(shape)
    assert far(value) is value


def test_what_looks_at_it_touches_its_own_elements_only():
    before = resident()
    found = far(torch.ones(129, 129))
    watch = Watch()
    watch.keep("x", found)
    region = Region(found)
    region.give(found)
    stride = found.stride(0)
    assert region.outside(np.array([4 * stride * 128]), 4) is None
    assert region.outside(np.array([4 * stride]), 4) is None
    assert region.outside(np.array([4 * 129, 4 * stride + 4 * 129]), 4).tolist() == [True, True]
    assert watch.changed() == ()
    found[128, 3] = 7.0
    (changed,) = watch.changed()
    assert (changed.index, changed.before, changed.after, changed.count) == ((128, 3), 1.0, 7.0, 1)
    assert resident() - before < 100 << 20


def test_the_whole_storage_may_be_declared():
    region = Region(found := far(torch.ones(3, 4)))
    region.give(found, whole=True)
    assert region.outside(np.array([64]), 4) is None


def test_zeros_take_memory_where_they_are_written():
    before = resident()
    found = virtual.zeros(1 << 33, np.int32)
    found[:: 1 << 31] = 5
    assert (int(found[1 << 31]), int(found[12345])) == (5, 0)
    assert resident() - before < 10 << 20
    assert virtual.zeros(10, np.bool_).tolist() == [False] * 10


def test_a_machine_without_address_space_says_so(monkeypatch):
    assert virtual.refused() == ""

    def nothing(size):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(virtual, "mapped", nothing)
    assert virtual.refused() == "32 GiB of address space cannot be mapped here: [Errno 12] Cannot allocate memory"
