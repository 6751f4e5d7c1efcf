"""Ops by name and glob, cases by a `-k` expression."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opcheck.core.select import matcher, select_ops
from opcheck.errors import OpcheckError, UnknownOp

KNOWN = ("ops::matmul", "ops::rms_norm", "ops::softmax", "other::softmax")


@pytest.mark.parametrize(("wanted", "chosen"), [
    ((), KNOWN),
    (("ops::softmax",), ("ops::softmax",)),
    (("*::softmax",), ("ops::softmax", "other::softmax")),
    (("other::*", "ops::m*"), ("other::softmax", "ops::matmul")),
    (("ops::*", "ops::matmul"), ("ops::matmul", "ops::rms_norm", "ops::softmax")),
])  # fmt: skip
def test_names_and_globs(wanted, chosen):
    assert select_ops(wanted, KNOWN) == chosen


@pytest.mark.parametrize(("wanted", "known", "says"), [
    ("ops::softmaxx", KNOWN, "no op is called 'ops::softmaxx'; did you mean ops::softmax?"),
    ("OPS::*", KNOWN, "known are ops::matmul, ops::rms_norm, ops::softmax, other::softmax"),
    ("x", (), "no op is called 'x'; known are none"),
])  # fmt: skip
def test_a_name_that_matches_nothing_is_refused(wanted, known, says):
    with pytest.raises(UnknownOp, match=re.escape(says)):
        select_ops(("*",) * bool(known) + (wanted,), known)


CASE = "ops::softmax[bfloat16;rows=3,cols=129;one_nan;;;;0]@cpu"


@pytest.mark.parametrize(("expression", "expected"), [
    ("", True), ("  ", True),
    ("softmax", True), ("SoftMax", True), ("matmul", False),
    ("softmax and bfloat16", True), ("softmax and float64", False), ("softmax AND bfloat16", True),
    ("matmul or bfloat16", True), ("matmul or float64", False),
    ("not matmul", True), ("not softmax", False), ("not not softmax", True),
    ("not matmul and not float64", True), ("not (softmax and float64)", True), ("not softmax or bfloat16", True),
    ("matmul and x or softmax", True), ("softmax or matmul and x", True), ("(softmax or matmul) and x1", False),
    ("cols=129", True), ("rows=3,cols=129;one_nan", True), ("((softmax))", True),
])  # fmt: skip
def test_expressions(expression, expected):
    assert matcher(expression)(CASE) is expected


@pytest.mark.parametrize(("expression", "near"), [
    ("and", "'and'"), ("softmax and", "its end"), ("or softmax", "'or'"), ("not", "its end"), ("(softmax", "its end"),
    ("softmax)", "')'"), ("()", "')'"), ("softmax bfloat16", "'bfloat16'"), ("a and or b", "'or'"),
])  # fmt: skip
def test_what_cannot_be_read_says_where(expression, near):
    with pytest.raises(OpcheckError, match=re.escape(f"-k {expression!r} cannot be read near {near}")):
        matcher(expression)


words = st.sampled_from(["soft", "max", "zzz", "qqq"])
trees = st.recursive(
    words,
    lambda inner: st.tuples(st.just("not"), inner) | st.tuples(inner, st.sampled_from(["and", "or"]), inner),
    max_leaves=8,
)


def written(tree):
    return (
        tree
        if isinstance(tree, str)
        else f"({' '.join(written(part) if part not in OPERATORS else part for part in tree)})"
    )


def meant(tree, text):
    match tree:
        case str():
            return tree in text
        case ("not", inner):
            return not meant(inner, text)
        case (left, "and", right):
            return meant(left, text) and meant(right, text)
        case (left, "or", right):
            return meant(left, text) or meant(right, text)


OPERATORS = ("not", "and", "or")


@given(trees)
def test_parenthesised_expressions_mean_what_python_means(tree):
    assert matcher(written(tree))("softmax") == meant(tree, "softmax")
    plain = written(tree).replace("(", " ").replace(")", " ")
    names = {word: str(word in "softmax") for word in ("soft", "max", "zzz", "qqq")}
    assert matcher(plain)("softmax") == eval(" ".join(names.get(word, word) for word in plain.split()))
