"""Triton's IR, written by hand, is read for what it does and on whose line."""

import pytest

from opcheck.backends.builds import listing

HEAD = '#loc = loc("/k.py":3:1)\nmodule {\n  tt.func public @k(%x: !tt.ptr<f32> loc("x"(#loc)), %y: ARGUMENT) {\n'
TAIL = (
    "    tt.return loc(#loc)\n  } loc(#loc)\n} loc(#loc)\n"
    '#loc1 = loc("/helper.py":12:9)\n#loc2 = loc("/k.py":7:5)\n#loc3 = loc("w"(#loc2))\n'
    "#loc4 = loc(callsite(#loc1 at #loc3))\n"
)


def ttir(*lines, argument="f32"):
    return HEAD.replace("ARGUMENT", argument) + "".join(f"    {line}\n" for line in lines) + TAIL


WIDENED = "%w = arith.extf %v : tensor<128xf32> to tensor<128xf64> loc(#loc4)"
CONSTANT = "%c = arith.constant dense<1.5> : tensor<128xf64> loc(#loc2)"


@pytest.mark.parametrize(("lines", "argument", "found"), [
    ((CONSTANT, WIDENED), "f32", "/helper.py:12"),
    (("%w = arith.mulf %a, %b : f64 loc(#loc3)",), "f32", "/k.py:7"),
    ((WIDENED,), "!tt.ptr<f64>", ""),
    (("%f64 = arith.addf %a, %b : tensor<128xf32> loc(#loc2)",), "f32", ""),
    (("%w = arith.extf %v : tensor<8xf32> to tensor<8xf64> loc(#loc9)",), "f32", "an unknown line"),
])  # fmt: skip
def test_double(lines, argument, found):
    assert listing.double(ttir(*lines, argument=argument)) == found


@pytest.mark.parametrize(("text", "found"), [
    ("tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>", True),
    ("tt.dot %a, %b, %c, inputPrecision = tf32x3 : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>", False),
    ("tt.dot %a, %b, %c : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>", False),
    ("tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>", False),
])  # fmt: skip
def test_tf32(text, found):
    assert listing.tf32(ttir(f"%d = {text} loc(#loc2)")) == ("/k.py:7" if found else "")


@pytest.mark.parametrize(("text", "found"), [
    ("fadd, acq_rel, gpu, %p, %v, %m : (tensor<8x!tt.ptr<bf16>>, tensor<8xbf16>, tensor<8xi1>) -> tensor<8xbf16>",
     "bfloat16 at /k.py:7"),
    ("fadd, relaxed, gpu, %p, %v, %m : (!tt.ptr<f16>, f16, i1) -> f16", "float16 at /k.py:7"),
    ("fadd, relaxed, gpu, %p, %v, %m : (!tt.ptr<f32>, f32, i1) -> f32", ""),
    ("max, relaxed, gpu, %p, %v, %m : (!tt.ptr<i16>, i16, i1) -> i16", ""),
])  # fmt: skip
def test_atomics(text, found):
    assert listing.atomics(ttir(f"%d = tt.atomic_rmw {text} loc(#loc2)")) == found
