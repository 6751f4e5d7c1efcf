"""A case is its id: printing and reading back are inverses, and what cannot be read is refused in words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opcheck.core.case import Case, Dims, Sample
from opcheck.core.policy import DTYPES
from opcheck.core.variants import variant_text, variant_values
from opcheck.errors import BadCase

names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
dtypes = st.sampled_from(DTYPES)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(max_size=12)
    | st.sampled_from([";", "'", "a,b=1", "]@cpu"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
variants = st.dictionaries(names, values, max_size=3)
layouts = st.lists(st.builds("{}={}".format, names | names.map("grad:{}".format), names), max_size=3).map("+".join)
cases = st.builds(
    Case,
    op=st.builds("{}::{}".format, names, names),
    dtype=dtypes | st.dictionaries(names, dtypes, min_size=1, max_size=3).map(
        lambda table: ",".join(f"{name}={dtype}" for name, dtype in table.items())
    ),
    dims=st.dictionaries(names | st.sampled_from(["...0", "...1"]), st.integers(0, 2**40), max_size=4).map(Dims),
    values=names,
    layout=layouts,
    variant=variants.map(variant_text),
    grads=st.lists(names, max_size=3).map("+".join),
    seed=st.integers(-(2**63), 2**63),
    backend=st.sampled_from(["cpu", "cuda", "cuda:1"]),
)  # fmt: skip


@given(cases)
def test_reading_is_the_inverse_of_printing(case):
    again = Case.parse(case.id)
    assert again == case
    assert hash(again) == hash(case)
    assert (again.id, list(again.dims.items())) == (case.id, list(case.dims.items()))
    assert "'" not in case.id, "the id stands between apostrophes in the command that runs it again"


@given(variants)
def test_reading_a_variant_is_the_inverse_of_printing_it(arguments):
    read = variant_values(variant_text(arguments))
    assert read == arguments
    assert list(map(type, read.values())) == list(map(type, arguments.values()))


def test_the_id_of_the_design():
    text = "ops::softmax[bfloat16;rows=3,cols=129;normal;x=transposed+grad:y=expanded;;;0]@cpu"
    case = Case.parse(text)
    assert case == Case(
        op="ops::softmax", dtype="bfloat16", dims=Dims(rows=3, cols=129), layout="x=transposed+grad:y=expanded"
    )
    assert case.id == text
    assert Case.parse(f"  {text}\n") == case


GOOD = "ops::softmax[float32;rows=3;normal;;;;0]@cpu"


@pytest.mark.parametrize(("text", "says"), [
    ("", "is not of the form op[dtype;dims;values;layout;variant;grads;seed]@backend"),
    ("ops::softmax", "is not of the form"),
    (GOOD.removesuffix("@cpu"), "is not of the form"),
    (GOOD.replace("@cpu", "@CPU"), "is not of the form"),
    (GOOD.replace("ops::softmax", ""), "is not of the form"),
    ("ops::softmax[]@cpu", "has 1 fields between the brackets"),
    (GOOD.replace(";;;;", ";;;"), "has 6 fields between the brackets"),
    (GOOD.replace(";;;;", ";;;;;"), "has 8 fields between the brackets"),
    (GOOD.replace("rows=3", "rows"), "dimension 'rows' should read name=size"),
    (GOOD.replace("rows=3", "rows=-1"), "dimension 'rows=-1' should read name=size"),
    (GOOD.replace("rows=3", "rows=²"), "dimension 'rows=²' should read name=size"),
    (GOOD.replace("rows=3", "=3"), "dimension '=3' should read name=size"),
    (GOOD.replace("rows=3", "rows=3,rows=4"), "dimension 'rows' is given twice"),
    (GOOD.replace(";0]", ";]"), "seed '' is not an integer"),
    (GOOD.replace(";0]", ";--5]"), "seed '--5' is not an integer"),
    (GOOD.replace(";0]", ";1.5]"), "seed '1.5' is not an integer"),
])  # fmt: skip
def test_what_cannot_be_read_is_refused_in_words(text, says):
    with pytest.raises(BadCase, match=re.escape(says)):
        Case.parse(text)


@pytest.mark.parametrize("text", ["eps", "eps=", "eps=x", "eps=1;", "eps=1 2", 'a="b', "=,"])
def test_a_variant_that_cannot_be_read_is_refused(text):
    with pytest.raises(BadCase, match="variant"):
        variant_values(text)


@given(st.permutations([("a", 1), ("b", 2), ("c", 3)]))
def test_dims_are_equal_in_any_order_and_keep_their_own(items):
    one, other = Dims(a=1, b=2, c=3), Dims(items)
    assert one == other == dict(items)
    assert hash(one) == hash(other)
    assert list(other) == [name for name, _ in items]
    assert one != Dims(a=1, b=2)
    assert one != Dims(a=1, b=2, c=4)


def test_dims_know_their_leading_sizes():
    dims = Dims({"...0": 2, "...1": 7, "rows": 3})
    assert dims.leading == (2, 7)
    assert (dims["rows"], len(dims), repr(Dims(rows=3))) == (3, 3, "Dims(rows=3)")
    assert dims.with_size("rows", 4) == {"...0": 2, "...1": 7, "rows": 4}
    with pytest.raises(KeyError):
        dims["cols"]


def test_a_case_answers_for_its_dtypes_and_shapes():
    mixed = Case(op="o::p", dtype="x=float16,weight=float32", dims=Dims({"...0": 2, "...1": 5, "rows": 3}))
    assert [mixed.dtype_of(name) for name in ("x", "weight", "other")] == ["float16", "float32", "float16"]
    assert mixed.dtypes == ("float16", "float32")
    assert Case(op="o::p", dtype="x=float16,y=float16").dtypes == ("float16",)
    assert Case(op="o::p", dtype="float16").dtype_of("x") == "float16"
    assert mixed.shape("...", "rows") == (2, 5, 3)
    assert mixed.shape() == ()
    with pytest.raises(BadCase, match=r"asks for dimension 'cols'; the contract's dims are \.\.\.0, \.\.\.1, rows"):
        mixed.shape("cols")
    assert mixed.with_seed(3).seed == 3


@pytest.mark.parametrize("draw", [
    lambda case: case.tensor("rows", name="x"), lambda case: case.integers(0, 2, name="x"),
    lambda case: case.offsets(3, 2, name="x"), lambda case: case.booleans(name="x"),
    lambda case: case.device, lambda case: case.generator,
])  # fmt: skip
def test_only_a_running_audit_draws(draw):
    with pytest.raises(BadCase, match=r"only a running audit can draw tensors; call opcheck.verify or opcheck.audit"):
        draw(Case(op="o::p", dtype="float32", dims=Dims(rows=3)))


def test_a_sample_shows_what_it_holds():
    assert repr(Sample(1, 2, eps=3)) == "Sample(2 positional, eps keywords)"
    assert repr(Sample(1)) == "Sample(1 positional, no keywords)"
