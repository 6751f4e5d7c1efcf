"""Integers that wrap are told where they reach an address, and nowhere else."""

from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from opcheck.backends.interpreter import install
from opcheck.backends.interpreter.observer import observed
from opcheck.run.far import far

assert install().active

STRIDE = 1 << 30


@triton.jit
def strided(x, y, stride, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0)
    if WIDE:
        row = row.to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + at, mask=at < n, other=0.0)
    tl.store(y + tl.program_id(0) * n + at, value, mask=at < n)


@triton.jit
def late(x, y, number, stride):
    place = (number * stride).to(tl.int64)
    tl.store(y, tl.load(x + place))


@triton.jit
def narrowed(x, y, number, stride):
    place = (number.to(tl.int64) * stride).to(tl.int32)
    tl.store(y, tl.load(x + place))


@triton.jit
def block(x, y, first, stride, n, BLOCK: tl.constexpr):
    rows = first + tl.arange(0, BLOCK)
    at = rows[:, None] * stride + tl.arange(0, BLOCK)[None, :]
    inside = (rows < n)[:, None] & (tl.arange(0, BLOCK) < n)[None, :]
    tl.store(y + tl.arange(0, 1), tl.sum(tl.load(x + at, mask=inside, other=0.0)))


@triton.jit
def remainder(x, y, number, stride, size):
    tl.store(y, tl.load(x + (number * stride) % size))


@triton.jit
def chosen(x, y, number, stride, size):
    place = number * stride
    place = tl.where(place < 0, place + size, place)
    tl.store(y, tl.load(x + tl.minimum(tl.maximum(place, 0), size - 1)))


@triton.jit
def difference(x, y, number, stride):
    tl.store(y, tl.load(x + (number * stride - (number - 1) * stride)))


@triton.jit
def low_bits(x, y, number):
    tl.store(y, tl.load(x + ((number * 1103515245 + 12345) & 3)))


@triton.jit
def high_bits(x, y, number):
    tl.store(y, tl.load(x + (((number * 1103515245 + 12345) >> 16) & 3)))


@triton.jit
def mixed(x, y, number):
    state = number * 1103515245
    state = (state ^ 61) * 1664525
    tl.store(y, tl.load(x) * 0.0 + state)


@triton.jit
def unsigned(x, y, number):
    state = number.to(tl.uint32) * 1664525 + 1013904223
    tl.store(y, tl.load(x + state % 4))


@triton.jit
def random(x, y, seed, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.rand(seed, at) + tl.load(x + tl.randint(seed, at) % 4 * 0))


def breaches(kernel, *args, size=4, grid=(1,), **constants):
    x, y = torch.ones(size), torch.zeros(16)
    with observed() as observer:
        observer.keep("x", x)
        observer.keep("y", y, writable=True)
        kernel[grid](x, y, *args, **constants)
    return observer.found().breaches


def line_of(kernel, text):
    lines = Path(__file__).read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(f"def {kernel}("))
    return next(at for at in range(start, len(lines)) if text in lines[at]) + 1


def wrapped(found):
    (breach,) = [item for item in found if item.rule == "wrapped"]
    return breach


def test_a_row_times_its_stride_is_told_with_both_numbers():
    found = breaches(strided, STRIDE, 3, grid=(3,), BLOCK=4, WIDE=False)
    breach = wrapped(found)
    line = line_of("strided", "row * stride")
    assert breach.where == f"{__file__}:{line}"
    assert (breach.kernel, breach.tensor, breach.access) == ("strided", "x", "load")
    assert (breach.program, breach.lane, breach.count) == ((2, 0, 0), 0, 3)
    assert (breach.meant, breach.offset) == (2 * STRIDE, 2 * STRIDE - 2**32)
    assert breach.other == f"at {__file__}:{line}"
    assert {item.rule for item in found} == {"wrapped", "outside"}


def test_in_64_bits_it_only_leaves_the_memory():
    assert {item.rule for item in breaches(strided, STRIDE, 3, grid=(3,), BLOCK=4, WIDE=True)} == {"outside"}


def test_the_line_is_that_of_the_arithmetic():
    breach = wrapped(breaches(late, 3, STRIDE))
    assert breach.where == f"{__file__}:{line_of('late', 'number * stride')}"
    assert breach.other == f"at {__file__}:{line_of('late', 'tl.load')}"
    assert (breach.meant, breach.offset) == (3 * STRIDE, 3 * STRIDE - 2**32)


def test_a_cast_that_loses_bits_is_a_wrap():
    breach = wrapped(breaches(narrowed, 3, STRIDE))
    assert breach.where == f"{__file__}:{line_of('narrowed', 'tl.int32')}"
    assert breach.meant == 3 * STRIDE


def test_lanes_are_numbered_in_the_flattened_block():
    breach = wrapped(breaches(block, 0, STRIDE, 4, BLOCK=4))
    assert (breach.lane, breach.count) == (8, 8)  # rows 2 and 3 of 4 x 4
    assert breach.meant == 2 * STRIDE


def test_masked_lanes_may_wrap():
    assert breaches(block, 0, STRIDE, 1, BLOCK=4) == ()


def test_a_remainder_of_what_wrapped_is_wrong():
    assert [item.rule for item in breaches(remainder, 8, STRIDE + 1, 3, size=4)] == ["wrapped"]
    assert breaches(remainder, 8, STRIDE, 4, size=4) == ()  # 2^33 and 0 leave the same


def test_what_is_put_right_by_hand_is_still_wrong():
    assert [item.rule for item in breaches(chosen, 3, STRIDE, 4)] == ["wrapped"]


@pytest.mark.parametrize(("kernel", "numbers", "constants"), [
    (difference, (2_000_000_000, 2), {}),  # both products wrap, their difference is 2
    (low_bits, (1234567,), {}),
    (high_bits, (1234567,), {}),
    (mixed, (1234567,), {}),
    (unsigned, (1234567,), {}),
    (random, (1234567,), {"BLOCK": 8}),
])  # fmt: skip
def test_hashes_and_what_comes_out_right_are_let_through(kernel, numbers, constants):
    assert breaches(kernel, *numbers, **constants) == ()


@pytest.mark.parametrize(("wide", "rules"), [(True, []), (False, ["outside", "wrapped"])])
def test_a_far_tensor_has_such_strides(wide, rules):
    x, y = far(torch.arange(12.0).reshape(3, 4)), torch.zeros(16)
    with observed() as observer:
        observer.keep("x", x)
        observer.keep("y", y, writable=True)
        strided[(3,)](x, y, x.stride(0), 4, BLOCK=4, WIDE=wide)
    assert sorted(item.rule for item in observer.found().breaches) == rules
    assert y[:8].tolist() == list(range(8))
    assert (y[8:12].tolist() == [8.0, 9.0, 10.0, 11.0]) == wide


def test_between_the_rows_of_a_far_tensor_is_nothing_of_it():
    x, y = far(torch.ones(3, 4)), torch.zeros(16)
    with observed() as observer:
        observer.keep("x", x)
        observer.keep("y", y, writable=True)
        strided[(2,)](x, y, 4, 4, BLOCK=4, WIDE=True)
    (breach,) = observer.found().breaches
    assert (breach.rule, breach.offset, breach.count) == ("around", 4, 4)


def test_nothing_is_followed_outside():
    from triton.runtime.interpreter import InterpreterBuilder

    before = {name: value for name, value in vars(InterpreterBuilder).items() if name.startswith("create_")}
    with observed():
        assert vars(InterpreterBuilder)["create_mul"] is not before["create_mul"]
    assert {name: vars(InterpreterBuilder)[name] for name in before} == before
