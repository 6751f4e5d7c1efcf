"""Condition numbers against values by hand."""

import math

import pytest
import torch

from opcheck import Sample
from opcheck.core.case import Case, Dims
from opcheck.core.spec import Argument, OpSpec
from opcheck.run.kappa import kappa_of, terms_of
from opcheck.run.roles import run_role

CPU = torch.device("cpu")
X = torch.tensor([1.0, 2.0, -2.5])  # sum 0.5, sum of magnitudes 5.5


def kappa(function, *tensors, tensor="out", terms=None, at=None):
    """Return the condition number of the element `at`, where the reference is made wrong."""
    spec = OpSpec(
        name="t::op", target=function, reference=function, golden=function, samples=lambda case: Sample(*tensors),
        arguments=tuple(Argument(name=f"x{number}", kind="tensor") for number in range(len(tensors))), terms=terms,
    )  # fmt: skip
    case = Case(op="t::op", dtype="float32", dims=Dims())
    golden = run_role(spec, case, "golden", CPU)
    reference = golden.tensors[tensor].detach().float().clone()
    reference[at or ()] += 1.0
    return kappa_of(spec, case, CPU, tensor, reference, golden, terms_of(spec, case, CPU).get(tensor))


def test_a_sum_by_its_terms():
    found = kappa(torch.sum, X, terms=lambda x: x)
    assert (found.of, found.value, found.quotient) == ("terms", 11.0, 2.0)


def test_a_sum_by_its_inputs():
    found = kappa(torch.sum, X)
    assert (found.of, found.value) == ("inputs", pytest.approx(11.0))
    assert found.perturbed == pytest.approx(1.0, abs=0.5)


def test_a_dot_has_twice_as_much_by_its_inputs():
    assert kappa(torch.dot, X, torch.ones(3)).value == pytest.approx(22.0)


def test_the_element_where_the_reference_is_furthest_off():
    found = kappa(lambda x: x.sum(-1), torch.stack([X, torch.tensor([1.0, 1.0, 1.0])]), terms=lambda x: x, at=(1,))
    assert (found.index, found.value) == ((1,), 1.0)


def test_terms_that_cancel_to_nothing():
    assert kappa(torch.sum, torch.tensor([1.0, -1.0]), terms=lambda x: x).value == math.inf


def test_terms_that_do_not_add_up():
    assert kappa(torch.sum, X, terms=lambda x: 2 * x).problem == "the terms add up to 1 where golden is 0.5"


def test_terms_of_another_shape():
    found = kappa(lambda x: x.sum(-1), X[None], terms=lambda x: x[0], at=(0,))
    assert found.problem == "terms gives shape [3]; it should be [1, T]"


def test_a_gradient_by_double_backward():
    # d/dx sum(x^2) g = 2 x g: x and g count once each
    found = kappa(lambda x: x.square().sum(), X, tensor="grad x0", at=(2,))
    assert (found.of, found.index, found.value) == ("inputs", (2,), pytest.approx(2.0))


def test_a_variance_far_from_zero_is_not_what_its_terms_say():
    # sum_i |x_i 2 (x_i - m) / n| / variance, with x = 1000 -+ 1: 2 x 1000 / 1 = 2000
    found = kappa(lambda x: x.var(correction=0), torch.tensor([999.0, 1001.0]))
    assert found.value == pytest.approx(2000.0)


def test_a_kink_has_no_condition():
    found = kappa(torch.relu, torch.tensor([0.0]), at=(0,))
    assert found.value == math.inf
    assert found.perturbed == math.inf


def test_a_gradient_that_always_cancels_is_excused_by_what_changed_inputs_do_to_it():
    # x / |x| of one element: its gradient is 0 and golden's noise is not, nor does it follow its own derivative.
    x = torch.tensor([[0.3], [0.7], [1.1], [1.9]])
    found = [kappa(lambda x: torch.nn.functional.normalize(x, dim=-1), x, tensor="grad x0", at=(at, 0))
             for at in range(len(x))]  # fmt: skip
    noisy = [item for item in found if item.value < math.inf]
    assert noisy
    assert all(item.excuses > 1e6 for item in noisy)


def test_a_gradient_that_does_not_cancel_is_not_excused():
    found = kappa(lambda x: torch.nn.functional.normalize(x, dim=-1), X[None], tensor="grad x0", at=(0, 1))
    assert found.excuses == found.value < 100
