"""Golden, right ones and ones that are wrong in exactly one way, and targets that are their own reference."""

import pytest
import torch

from opcheck.auditor import audit_case
from opcheck.checks import all_checks
from opcheck.checks.protocol import Subject
from opcheck.core.case import Case, Dims, Sample
from opcheck.core.policy import Contract, Policy
from opcheck.core.spec import Argument, OpSpec
from opcheck.core.verdict import Verdict
from opcheck.run.execute import Executor
from opcheck.run.oracle import promote

OP = "ops::example"
DIMS = Dims(rows=3, cols=129)


class Through:
    """A target that rounds once what the reference gives in FP64; it is no Python function, so nobody looks inside."""

    def __init__(self, reference):
        self.reference = reference

    def __call__(self, x):
        found = promote(self.reference)(x.double())
        return found.to(x.dtype) if found.dtype.is_floating_point else found


def findings(golden, reference, *, target=None, kind="reduction", dtype="float32", offset=0.0, checks=("oracle",),
             level="standard", reduces=("cols",), mutates=False):  # fmt: skip
    """What `oracle` says of an op `[rows, cols] -> ...` whose inputs have the mean `offset`."""

    def samples(case):
        return Sample(case.tensor("rows", "cols", name="x").double().add(offset).to(getattr(torch, dtype)))

    spec = OpSpec(
        name=OP, target=target or Through(reference), reference=reference, golden=golden, samples=samples,
        arguments=(Argument(name="x", kind="tensor", mutated=mutates),), promoted=hasattr(golden, "promoted_from"),
    )  # fmt: skip
    contract = Contract(name=OP, kind=kind, dtypes=(dtype,), dims=("rows", "cols"), reduces=reduces)
    subject = Subject(contract=contract, case=Case(op=OP, dtype=dtype, dims=DIMS), level=level, representative=True)
    executor = Executor(spec, contract, torch.device("cpu"), lambda *_: None)
    chosen = {name: check for name, check in all_checks().items() if name in checks}
    return audit_case(subject, chosen, Policy(ops={OP: contract}), executor).findings


def only(*args, **options):
    (finding,) = findings(*args, **options)
    return finding


def normalized(x, eps=1e-6):
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)


def in_float32(x):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_right_golden_passes(dtype):
    found = only(normalized, in_float32, dtype=dtype)
    assert found.verdict is Verdict.PASS
    assert "gradcheck holds" in found.detail
    assert "the reference in FP64 is at most" in found.detail
    assert "another order of its reductions is at most" in found.detail
    assert found.not_covered == ()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_another_eps_is_another_formula(dtype):
    found = findings(lambda x: normalized(x, 1e-5), in_float32, dtype=dtype)
    assert {item.tensor for item in found} == {"out", "grad x"}
    assert all(item.verdict is Verdict.INCONCLUSIVE for item in found)
    assert all("not the same formula" in item.detail for item in found)
    # x / sqrt(m + 1e-5) against x / sqrt(m + 1e-6), m near 1: a relative difference of (1e-5 - 1e-6) / 2m.
    golden, reference = (float(text.split()[-1].strip(",")) for text in found[0].detail.split("golden gives")[1].split(
        "the reference"))  # fmt: skip
    assert abs(golden / reference - 1) == pytest.approx(4.5e-6, rel=0.3)


def test_a_promoted_golden_is_not_compared_with_itself():
    found = only(promote(in_float32), in_float32)
    assert found.verdict is Verdict.PASS
    assert "golden is the promoted reference" in found.detail


def test_a_constant_of_eight_digits_is_the_same_formula():
    found = only(lambda x: x * 0.7978845608028654, lambda x: x * 0.79788456, kind="elementwise", reduces=())
    assert found.verdict is Verdict.PASS


def test_a_detached_term_is_not_the_gradient_of_the_forward():
    def detached(x):
        return x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-6).detach()

    found = only(detached, detached)
    assert (found.verdict, found.tensor) == (Verdict.INCONCLUSIVE, "golden")
    assert "golden's gradient is not that of its forward" in found.detail


@pytest.mark.parametrize("golden", [
    torch.relu,
    lambda x: x.amax(-1),
    lambda x: x.abs().sum(-1),
    lambda x: torch.round(x),
    lambda x: x.sort(-1).values,
    lambda x: torch.softmax(x, -1) - x.amax(-1, keepdim=True).detach() * 0,
])  # fmt: skip
def test_kinks_and_steps_give_no_alarm(golden):
    assert only(golden, golden).verdict is Verdict.PASS


def test_no_gradient_is_said():
    assert "no gradcheck: no finite output" in only(lambda x: x.argmax(-1), lambda x: x.argmax(-1)).detail
    assert "no gradcheck: the op mutates" in only(lambda x: x.mul_(2.0), lambda x: x.mul_(2.0), mutates=True,
                                                  target=lambda x: x.add_(x)).detail  # fmt: skip


def cancelling(x):
    return x.square().mean(-1) - x.mean(-1).square()


def centered(x):
    return (x - x.mean(-1, keepdim=True)).square().mean(-1)


def careful(x):
    return centered(x.double()).to(x.dtype)


def test_a_golden_that_cancels_is_not_accurate_enough():
    # E[x^2] is 1e12, whose ulp in FP64 is 1.2e-4; an ulp of the variance, near 1, in float32 is 1.2e-7.
    found = findings(cancelling, careful, offset=1e6)
    assert all(item.verdict is Verdict.INCONCLUSIVE for item in found)
    assert "out" in {item.tensor for item in found if "not accurate enough" in item.detail}
    assert not [item for item in found if item.tensor == "golden"]


@pytest.mark.parametrize(("golden", "offset"), [
    (cancelling, 0.0), (cancelling, 10.0), (centered, 0.0), (centered, 1e4), (centered, 1e6), (centered, 1e8),
])  # fmt: skip
def test_one_that_does_not_is(golden, offset):
    assert only(golden, golden, offset=offset).verdict is Verdict.PASS
    assert only(golden, careful if golden is centered else golden, offset=offset).verdict is Verdict.PASS


def test_where_order_means_something_another_order_says_nothing():
    def weighted(x):
        return (x * torch.arange(x.shape[-1], device=x.device)).sum(-1)

    found = only(weighted, weighted)
    assert found.verdict is Verdict.PASS
    assert any("in another order of its reductions" in text for text in found.not_covered)


def elementwise(golden, reference=None, **options):
    return only(golden, reference or golden, kind="elementwise", reduces=(), **options)


def test_log_of_one_plus_x_loses_digits():
    def logarithm(x):
        return torch.log(1 + x.abs())

    found = elementwise(logarithm)
    assert (found.verdict, found.tensor) == (Verdict.INCONCLUSIVE, "out")
    assert "golden is" in found.detail
    assert "from mpmath's value" in found.detail
    right = elementwise(lambda x: torch.log1p(x.abs()))
    assert right.verdict is Verdict.PASS
    assert "mpmath agrees at" in right.detail


def test_an_erf_that_cancels_loses_digits_and_erfc_does_not():
    def cancels(x):
        return x * (1 + torch.erf(x / 2**0.5)) / 2

    assert "from mpmath's value" in elementwise(cancels).detail
    right = elementwise(lambda x: x * torch.special.erfc(-x / 2**0.5) / 2)
    assert right.verdict is Verdict.PASS
    assert "mpmath agrees at" in right.detail


def test_an_operation_beyond_the_table_is_not_covered():
    found = elementwise(lambda x: torch.special.i0e(x))
    assert found.verdict is Verdict.PASS
    assert found.not_covered == ("golden against mpmath, for which it uses special_i0e",)


def triple(x):
    return x.exp() * 3


def named(x):
    return triple(x)


def unless_on_a_gpu(x):
    return x.exp() * 3 if x.device.type == "cpu" else triple(x)


@pytest.mark.parametrize(("target", "said"), [(triple, "the same function"), (named, "calls it")])
def test_a_target_that_is_its_reference_is_said_to_be(target, said):
    found = elementwise(triple, triple, target=target)
    assert (found.verdict, found.tensor) == (Verdict.INCONCLUSIVE, "the op")
    assert found.detail.startswith("the target is its own reference: ")
    assert said in found.detail


def test_a_fallback_that_is_not_taken_is_none():
    assert "its own reference" not in elementwise(triple, triple, target=unless_on_a_gpu).detail


def test_every_bit_the_references_without_a_kernel_is_a_limitation():
    found = elementwise(triple, triple, target=lambda x: x.exp() * 3)
    assert (found.verdict, found.tensor) == (Verdict.PASS_WITH_LIMITATIONS, "the op")
    other = elementwise(triple, triple, target=lambda x: (x.double().exp() * 3).to(x.dtype))
    assert other.verdict is Verdict.PASS


def test_only_the_representative_case_and_the_first_dtype_at_quick():
    check = all_checks()["oracle"]
    contract = Contract(name=OP, kind="reduction", dtypes=("float32", "float16"), dims=("rows", "cols"))
    first, second = (Case(op=OP, dtype=dtype, dims=DIMS) for dtype in contract.dtypes)

    def applies(case, level, representative=True):
        subject = Subject(contract=contract, case=case, level=level, representative=representative)
        return check.applies(subject) == ""

    assert applies(first, "quick")
    assert not applies(second, "quick")
    assert applies(second, "standard")
    assert not applies(first, "standard", representative=False)
