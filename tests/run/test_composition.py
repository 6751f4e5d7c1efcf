"""Surroundings in which users put an op, on small ops whose fault shows there and nowhere else."""

import dataclasses

import pytest
import torch

from opcheck.core.composition import COMPOSITION, Checkpointed, Compiled, Packed, Transformed
from opcheck.run.composition import composed
from opcheck.run.composition.readiness import unready

from .surrounded import CASE, CONTRACT, CPU, failures, plain, registered, silent

AOT, INDUCTOR = Compiled(backend="aot_eager"), Compiled(backend="inductor")
ALL = (AOT, Checkpointed(reentrant=False), Checkpointed(reentrant=True), Packed(), Transformed())


def complaints(spec, trial, contract=CONTRACT):
    return failures(COMPOSITION, trial, composed(spec, contract, CASE, CPU, trial, silent), contract)


def square(x):
    return x * x


def squared(x: torch.Tensor) -> torch.Tensor:
    return x * x


def slope(ctx, grad):
    (x,) = ctx.saved_tensors
    return 2.0 * x * grad


@pytest.mark.parametrize("trial", ALL, ids=str)
def test_a_right_op_is_right_everywhere(trial):
    assert complaints(registered(squared, square, slope), trial) == []


def test_all_tensors_of_a_right_op_have_the_bits_of_the_ordinary_run():
    found = composed(registered(squared, square, slope), CONTRACT, CASE, CPU, AOT, silent)
    assert (found.equal, found.different, found.problems) == (3 * 2, (), ())  # three inputs, an output and a gradient


def mean_of_positive(x):
    return (x.clamp(min=0).sum() / (x > 0).sum()).reshape(1)


@pytest.mark.parametrize("wrong", [False, True])
def test_a_number_that_the_body_leaves_behind_is_a_constant_when_compiled(wrong):
    left = {"count": 1}

    def body(x: torch.Tensor) -> torch.Tensor:
        left["count"] = int((x > 0).sum())
        return mean_of_positive(x)

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.count = left["count"]

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        count = ctx.count if wrong else (x > 0).sum()
        return (x > 0).to(x.dtype) * grad / count

    spec = registered(body, mean_of_positive, backward, fake=lambda x: x.new_empty(1), setup_context=setup_context)
    contract = dataclasses.replace(CONTRACT, kind="reduction", reduces=("rows", "cols"))
    tensors = {tensor for tensor, _ in complaints(spec, AOT, contract)}
    assert tensors == ({"grad x"} if wrong else set())
    assert complaints(spec, Checkpointed(reentrant=False), contract) == []


def test_an_op_without_a_fake_does_not_compile():
    ((tensor, detail),) = complaints(registered(squared, square, slope, fake=None), AOT)
    assert tensor == "the op"
    assert "raises" in detail


def test_a_backward_that_reads_a_value_does_not_compile():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2.0 * x * grad if float(x.abs().max()) > 0 else grad

    spec = registered(squared, square, backward)
    ((tensor, detail),) = complaints(spec, AOT)
    assert (tensor, "raises" in detail) == ("the op", True)
    assert complaints(spec, Packed()) == []


def test_a_mutating_op_is_compiled_on_copies():
    def body(x: torch.Tensor) -> None:
        x.mul_(2.0)

    def twice(x):
        x.mul_(2.0)

    found = composed(registered(body, twice, None, fake=None, mutates=("x",)), CONTRACT, CASE, CPU, AOT, silent)
    assert (found.equal, found.different, found.problems) == (3, (), ())


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_result_that_is_kept_for_its_input_is_cut_off_when_recomputed(reentrant):
    kept = {}

    def target(x):
        if x.data_ptr() not in kept:
            kept[x.data_ptr()] = x, square(x)
            return kept[x.data_ptr()][1]
        return kept[x.data_ptr()][1].detach()

    ((tensor, _),) = complaints(plain(target, square), Checkpointed(reentrant=reentrant))
    assert tensor in ("the op", "grad x")
    assert complaints(plain(square, square), Checkpointed(reentrant=reentrant)) == []


@pytest.mark.parametrize("wrong", [False, True])
def test_a_backward_that_expects_the_strides_of_the_forward(wrong):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.strides = x.stride()
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2.0 * (x.as_strided(x.shape, ctx.strides) if wrong else x) * grad

    found = complaints(plain(Square.apply, square), Packed())
    assert {tensor for tensor, _ in found} == ({"grad x"} if wrong else set())
    assert all("x=transposed" in detail for _, detail in found)


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_vmap_rule_that_is_wrong(factor):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2.0 * x * grad

        @staticmethod
        def vmap(info, in_dims, x):
            return x * x * factor, in_dims[0]

    found = complaints(plain(Square.apply, square), Transformed())
    assert {tensor for tensor, _ in found} == ({"out"} if factor != 1.0 else set())


def test_what_a_transform_refuses_is_noted_and_no_failure():
    found = composed(registered(squared, square, slope), CONTRACT, CASE, CPU, Transformed(), silent)
    assert any("torch.func.vjp it raises" in note for note in found.notes)
    assert found.problems == ()


@pytest.mark.slow  # the first build on a machine compiles torch's headers
def test_inductor_is_right_or_not_covered():
    spec = registered(squared, square, slope)
    found = composed(spec, CONTRACT, CASE, CPU, INDUCTOR, silent)
    assert found.problems == found.different == ()
    assert (found.equal, bool(found.uncovered)) in ((6, False), (0, True))


def test_without_a_compiler_inductor_is_not_covered(monkeypatch):
    from opcheck.run.composition import readiness

    monkeypatch.setattr(readiness, "_ANSWER", ["it cannot build for the CPU: no compiler"])
    assert unready("cuda", lambda: None) == ""
    found = composed(registered(squared, square, slope), CONTRACT, CASE, CPU, INDUCTOR, silent)
    assert found.uncovered == ("torch.compile (inductor): it cannot build for the CPU: no compiler",)
    assert failures(COMPOSITION, INDUCTOR, found) == []


@pytest.mark.parametrize("trial", ALL, ids=str)
def test_an_op_that_promises_no_gradient_is_never_asked_for_one(trial):
    def rounded(x: torch.Tensor) -> torch.Tensor:
        return x.round()

    spec = registered(rounded, torch.round, None)
    contract = dataclasses.replace(CONTRACT, no_grad={"x": "a step function"})
    assert complaints(spec, trial, contract) == []
    if not isinstance(trial, Transformed):  # of which it raises before anything is compared
        assert complaints(spec, trial) != []
