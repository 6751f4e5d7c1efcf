"""Autograd's other ways, on small eager ops whose fault is known."""

import pytest
import torch

from opcheck import Sample
from opcheck.core.behaviour import Autocast
from opcheck.core.case import Case, Dims
from opcheck.core.policy import Contract
from opcheck.core.spec import Argument, OpSpec
from opcheck.run.autograd import Autograd
from opcheck.run.refusal import refusal

CPU = torch.device("cpu")
CASE = Case(op="t::op", dtype="float32", dims=Dims(rows=4, cols=6))
CONTRACT = Contract(name="t::op", kind="elementwise", dtypes=("float32",), dims=("rows", "cols"))

ARGUMENTS = (Argument(name="x", kind="tensor"), Argument(name="weight", kind="tensor"))


def two(case):
    return Sample(case.tensor("rows", "cols", name="x"), case.tensor("cols", name="weight"))


def product(x, weight):
    return x * weight


def autograd_of(target, reference=product, contract=CONTRACT):
    spec = OpSpec(name="t::op", target=target, reference=reference, golden=reference, samples=two, arguments=ARGUMENTS)
    return Autograd(spec, contract, CASE, CPU, lambda case, label, role: None)


def function(forward, backward):
    """Make an autograd.Function's apply of two plain functions."""

    class Made(torch.autograd.Function):
        pass

    Made.forward, Made.backward = staticmethod(forward), staticmethod(backward)
    return Made.apply


def keep(ctx, x, weight):
    ctx.save_for_backward(x, weight)
    return x * weight


def test_a_right_op_is_right_in_every_way():
    tried = autograd_of(product)
    backwards = tried.backwards()
    assert (backwards.problems, backwards.different) == ((), ())
    assert backwards.equal == 2 + 2 * 2  # both gradients again, and output and gradient of each subset
    double = tried.double_backward()
    assert {item.measured.tensor for item in double.different} >= {
        "grad weight of grad x", "grad x of grad weight", "grad upstream out of grad x",
    }  # fmt: skip
    assert all(item.measured.target_error <= 1e-6 for item in double.different)
    assert tried.autocast(Autocast(dtype="bfloat16")).problems == ()


def test_a_second_backward_that_differs_is_a_problem():
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        result = grad * weight, (grad * x).sum(0)
        x.data.mul_(2.0)
        return result

    (problem,) = autograd_of(function(keep, backward)).backwards().problems
    assert (problem.tensor, problem.when) == ("grad weight", "a second backward through one graph")


def test_a_second_backward_that_raises_is_a_problem():
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        if hasattr(ctx, "used"):
            raise RuntimeError("the buffer is gone")
        ctx.used = True
        return grad * weight, (grad * x).sum(0)

    (problem,) = autograd_of(function(keep, backward)).backwards().problems
    assert "the buffer is gone" in problem.detail


def test_a_gradient_that_depends_on_its_neighbours_is_found():
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        factor = 1.0 if all(ctx.needs_input_grad) else 2.0
        return grad * weight * factor, (grad * x).sum(0)

    found = autograd_of(function(keep, backward)).backwards()
    assert [(item.when, item.measured.tensor) for item in found.different] == [("only x requires a gradient", "grad x")]
    assert found.different[0].measured.target_error > 0.1


def test_a_second_derivative_without_history_is_wrong():
    def forward(ctx, x, weight):
        ctx.x, ctx.weight = x.detach(), weight.detach()
        return x * weight

    def backward(ctx, grad):
        return grad * ctx.weight, (grad * ctx.x).sum(0)

    found = {
        item.measured.tensor: item for item in autograd_of(function(forward, backward)).double_backward().different
    }
    assert "None" in found["grad weight of grad x"].when
    assert found["grad weight of grad x"].measured.target_error > 0.1
    assert found["grad upstream out of grad x"].measured.target_error < 1e-6


def test_a_double_backward_that_raises_is_only_noted():
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad * weight, (grad * x).sum(0)

    apply = function(keep, torch.autograd.function.once_differentiable(backward))
    found = autograd_of(apply).double_backward()
    assert found.different == ()
    (note,) = found.notes
    assert "once_differentiable" in note


@pytest.mark.parametrize(("factor", "wrong"), [(1.0, False), (1.25, True)])
def test_under_autocast_values_are_held_to_what_narrow_inputs_explain(factor, wrong):
    def target(x, weight):
        if torch.is_autocast_enabled("cpu"):
            return (x.bfloat16() * weight.bfloat16() * factor).float()
        return x * weight

    found = autograd_of(target).autocast(Autocast(dtype="bfloat16"))
    out = next(item for item in found.different if item.measured.tensor == "out")
    assert out.errors.reference_error > 1e-4
    assert (out.measured.target_error > 4 * out.errors.reference_error) is wrong


def test_a_backward_that_raises_after_an_autocast_forward_is_a_problem_and_a_forward_is_not():
    def matmul(x, weight):
        return x @ weight[:, None]

    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight[:, None]

    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight[None, :], (x.T @ grad)[:, 0]

    # Function.forward runs with the caller's autocast: its output is narrow, and the saved inputs are not.
    found = autograd_of(function(forward, backward), reference=matmul).autocast(Autocast(dtype="bfloat16"))
    assert "the forward works and its backward does not" in found.problems[0].detail

    def refuses(x, weight):
        if torch.is_autocast_enabled("cpu"):
            raise TypeError("not under autocast")
        return x * weight

    refused = autograd_of(refuses).autocast(Autocast(dtype="float16"))
    assert refused.problems == ()
    assert "not under autocast" in refused.notes[0]


@pytest.mark.parametrize(("layout", "vacuous"), [("x=transposed", False), ("weight=padded", True)])
def test_a_refusal_is_tried_only_where_the_case_is_really_outside(layout, vacuous):
    spec = OpSpec(name="t::op", target=product, reference=product, golden=product, samples=two, arguments=ARGUMENTS)
    contract = Contract(
        name="t::op", kind="elementwise", dtypes=("float32",), dims=("rows", "cols"),
        contiguous={"x": "why", "weight": "why"},
    )  # fmt: skip
    case = Case(op="t::op", dtype="float32", dims=CASE.dims, layout=layout)
    found = refusal(spec, contract, case, CPU)
    assert bool(found.vacuous) is vacuous
    assert bool(found.returned) is not vacuous


def test_a_refusal_by_an_exception_is_right():
    def raises(x, weight):
        raise ValueError("too small")

    spec = OpSpec(name="t::op", target=raises, reference=product, golden=product, samples=two, arguments=ARGUMENTS)
    assert "ValueError" in refusal(spec, CONTRACT, CASE, CPU).error
