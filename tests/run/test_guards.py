"""Bands keep values, layout and alignment of what they surround, and every byte of them is watched."""

import ctypes

import pytest
import torch

from opcheck.core.guards import Trespass
from opcheck.run.guards import ALIGNMENT, LEAST, MOST, Guards, band_of
from opcheck.run.poison import LARGE, NAN

DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128),
)
both = pytest.mark.parametrize("bands", ["nan", "numbers"])


def guards(bands="nan", poison=NAN):
    return Guards(bands=bands, poison=poison)


def poke(tensor, element, byte=0):
    """Write one byte, as a kernel does that nobody sees: at the start of an element counted from the first one."""
    ctypes.memset(tensor.data_ptr() + element * tensor.element_size(), byte, 1)


@both
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_between_bands_is_the_same(dtype, bands):
    plain = torch.arange(12).reshape(3, 4).to(dtype).t()[1:]
    watch = guards(bands)
    found = watch.given("x", plain)
    assert torch.equal(found.view(torch.uint8) if dtype.itemsize == 1 else found, plain.view(torch.uint8)
                       if dtype.itemsize == 1 else plain)  # fmt: skip
    assert (found.shape, found.stride(), found.dtype) == (plain.shape, plain.stride(), plain.dtype)
    assert found.data_ptr() % 64 == plain.data_ptr() % 64
    assert not found._is_view()
    assert watch.trespasses() == ()


def test_the_need_of_a_gradient_stays():
    leaf = torch.ones(3, requires_grad=True)
    found = guards().given("x", leaf)
    assert found.requires_grad
    assert found.is_leaf
    assert not guards().given("x", torch.ones(3)).requires_grad


@both
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("count", "element", "side"), [
    (7, 7, "behind"), (8, 8, "behind"), (7, -1, "before"), (7, 500, "behind"),
])  # fmt: skip
def test_one_byte_beside_a_tensor_is_seen(dtype, bands, count, element, side):
    element = min(element, LEAST // dtype.itemsize)
    watch = guards(bands)
    found = watch.given("x", torch.zeros(count, dtype=dtype))
    poke(found, element, byte=0xA5)
    assert watch.trespasses() == (Trespass(tensor="x", side=side, offset=element, count=1, band=LEAST),)


@both
def test_the_last_byte_of_each_band_is_watched(bands):
    watch = guards(bands)
    found = watch.given("x", torch.zeros(3))
    poke(found, -LEAST // 4, byte=0xA5)
    poke(found, 3 + LEAST // 4 - 1, byte=0xA5)
    assert [(item.side, item.offset) for item in watch.trespasses()] == [("before", -1024), ("behind", 1026)]


def test_a_copy_of_one_band_into_another_is_seen_by_one_of_the_patterns():
    seen = []
    for bands in ("nan", "numbers"):
        watch = guards(bands)
        x, y = watch.given("x", torch.ones(5)), watch.given("y", torch.zeros(5))
        ctypes.memmove(y.data_ptr(), x.data_ptr(), 32)
        seen.append([(item.tensor, item.offset) for item in watch.trespasses()])
    assert seen == [[], [("y", 5)]]


def test_what_is_read_in_a_band():
    for bands, value in (("nan", None), ("numbers", (1, 2))):
        watch = guards(bands)
        floats = watch.given("x", torch.ones(2)).as_strided((1,), (1,), 1024 + 2)
        integers = [watch.given(str(at), torch.ones(2, dtype=torch.int32)) for at in range(2)]
        behind = [int(item.as_strided((1,), (1,), 1024 + 2)) for item in integers]
        if value is None:
            assert floats.isnan().all()
            assert behind == [-1, -1]
        else:
            assert floats.isfinite().all()
            assert floats.abs() >= 2
            assert behind == [2, 3]  # the second and the third tensor's


def test_arguments_that_share_memory_share_it_between_bands():
    whole = torch.arange(8.0)
    watch = guards()
    left, right = watch.given("left", whole[:4]), watch.given("right", whole[2:])
    left[3] = 9.0
    assert right.tolist() == [2.0, 9.0, 4.0, 5.0, 6.0, 7.0]
    assert whole[3] == 3.0


@pytest.mark.parametrize(("shape", "band"), [
    ((3, 5), LEAST), ((2, 2048), 8192), ((2, 2049), 8192 + ALIGNMENT), ((1, 1 << 20), MOST), ((), LEAST),
])  # fmt: skip
def test_a_band_is_a_row_within_bounds(shape, band):
    assert band_of(torch.empty(shape)) == band


@pytest.mark.parametrize("allocate", [
    lambda x: torch.empty(3, 4), lambda x: torch.empty_like(x), lambda x: x.new_empty(3, 4),
    lambda x: torch.zeros(3, 4), lambda x: torch.zeros_like(x), lambda x: x.new_zeros((3, 4)),
    lambda x: torch.full((3, 4), 2.0), lambda x: x.new_full((3, 4), 2.0), lambda x: torch.ones_like(x),
    lambda x: torch.rand(3, 4), lambda x: torch.randn_like(x), lambda x: torch.empty_strided((3, 4), (1, 3)),
    lambda x: x.t().contiguous().t(), lambda x: x.clone(),
])  # fmt: skip
def test_what_is_allocated_inside_has_bands(allocate):
    x = torch.ones(3, 4)
    watch = guards()
    with watch.inside():
        found = allocate(x)
    assert watch.allocated == 1
    poke(found, 12)
    (item,) = watch.trespasses()
    assert (item.side, item.offset) == ("behind", 12)
    line = allocate.__code__.co_firstlineno
    assert item.tensor.startswith("allocation 1, float32 [")
    assert item.tensor.endswith(f"test_guards.py:{line}")


def test_values_are_kept_and_the_generator_goes_on_as_usual():
    def drawn():
        torch.manual_seed(3)
        return [torch.rand(3), torch.randint(9, (3,)), torch.full((2,), 5), torch.arange(3.0).contiguous()]

    plain = drawn()
    with guards("numbers").inside():
        found = drawn()
    assert all(torch.equal(one, other) for one, other in zip(plain, found, strict=True))


def test_what_is_not_new_memory_stays():
    x = torch.ones(3)
    out = torch.zeros(3)
    watch = guards()
    with watch.inside():
        assert x.contiguous().data_ptr() == x.data_ptr()
        torch.full((3,), 2.0, out=out)
        torch.empty(3, device="meta")
    assert out.tolist() == [2.0] * 3
    assert watch.allocated == 0


def test_what_has_no_memory_of_its_own_passes_through():
    with guards().inside():
        found = torch.func.vmap(lambda row: torch.zeros_like(row) + row.clone())(torch.arange(6.0).reshape(2, 3))
    assert found.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    turned = torch.ones(2, dtype=torch.complex64).mul(1j).conj()
    assert torch.equal(guards().given("x", turned), turned)


def test_a_compiler_that_traces_sees_the_factories_alone():
    def target(x):
        return x + torch.zeros(3) + torch.ones_like(x)

    with guards().inside():
        found = torch.compile(target, backend="eager", fullgraph=True)(torch.arange(3.0))
    assert found.tolist() == [1.0, 2.0, 3.0]


def test_a_copy_that_autograd_follows_stays_differentiable():
    x = torch.ones(3, requires_grad=True)
    with guards().inside():
        found = x.clone() * 2.0
    assert torch.autograd.grad(found.sum(), x)[0].tolist() == [2.0] * 3


def test_outside_the_factories_are_as_before():
    before = torch.zeros, torch.Tensor.new_empty
    with guards().inside():
        assert torch.zeros is not before[0]
    assert (torch.zeros, torch.Tensor.new_empty) == before


@pytest.mark.parametrize(("poison", "value"), [(NAN, -1), (LARGE, 0x7B7B7B7B)])
def test_poison(poison, value):
    watch = guards(poison=poison)
    with watch.inside():
        found, zeros = torch.empty(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    assert found.tolist() == [value] * 4
    found[1] = 7
    assert watch.poisoned(found).tolist() == [True, False, True, True]
    assert watch.poisoned(found[1:3]).tolist() == [False, True]
    assert not watch.poisoned(zeros.fill_(value)).any()
    assert not watch.poisoned(torch.full((2,), value, dtype=torch.int32)).any()
