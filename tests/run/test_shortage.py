"""That memory ran short is noticed, also where what was raised is taken for something else."""

import pytest
import torch

from opcheck.run.failure import describe
from opcheck.run.refusal import refusal
from opcheck.run.roles import run_role
from opcheck.run.shortage import is_shortage, overhear, watched

from .surrounded import CASE, CONTRACT, CPU, plain

SHORT = [
    torch.OutOfMemoryError("Tried to allocate 4.00 GiB"),
    RuntimeError("CUDA error: out of memory"),
    RuntimeError("Triton Error [CUDA]: out of memory"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 64 bytes."),
    OSError(12, "Cannot allocate memory"),
    MemoryError(),
]
OTHER = [
    RuntimeError("CUDA error: an illegal memory access was encountered"),
    RuntimeError("out of resource: shared memory, Required: 294944, Hardware limit: 232448"),
    ValueError("x must lie in contiguous memory"),
]


def double(x):
    return x * 2


def short(x):
    raise torch.OutOfMemoryError("CUDA out of memory")


class ShortBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize(("errors", "yes"), [(SHORT, True), (OTHER, False)])
def test_what_a_shortage_looks_like(errors, yes):
    assert [error for error in errors if is_shortage(error) is not yes] == []


def test_a_refusal_for_want_of_memory_is_noticed():
    """It is none: the target would take what it should refuse, if there were the memory."""
    with watched("cpu") as memory:
        assert refusal(plain(short, double), CONTRACT, CASE, CPU).error
    assert memory.short


def test_a_backward_for_want_of_memory_is_noticed():
    with watched("cpu") as memory:
        assert run_role(plain(ShortBackward.apply, double), CASE, "target", CPU).backward
    assert memory.short


@pytest.mark.parametrize("how", ["cause", "context"])
def test_what_a_shortage_led_to_is_noticed(how):
    error = ValueError("no plan for this size")
    setattr(error, f"__{how}__", torch.OutOfMemoryError("CUDA out of memory"))
    with watched("cpu") as memory:
        describe(error, "target", "forward")
    assert memory.short


def test_other_failures_are_not():
    with watched("cpu") as memory:
        for error in OTHER:
            describe(error, "target", "forward")
        overhear("an illegal memory access was encountered")
    assert not memory.short


def test_another_process_is_overheard():
    with watched("cpu") as memory:
        overhear("target raised OutOfMemoryError in its forward: CUDA out of memory")
    assert memory.short


def test_one_block_is_not_another():
    describe(SHORT[0], "target", "forward")
    with watched("cpu") as memory:
        pass
    describe(SHORT[0], "target", "forward")
    assert not memory.short


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_on_a_gpu_the_allocator_counts_what_an_op_caught_itself(monkeypatch, backend):
    refusals = [3]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda at: {"num_ooms": refusals[0]})
    with watched(backend) as memory:
        pass
    assert not memory.short
    with watched(backend) as memory:
        refusals[0] += 1
    assert memory.short is (backend == "cuda")


def test_an_allocator_that_does_not_count_is_no_shortage(monkeypatch):
    def refuse(at):
        raise RuntimeError("CUDAPluggableAllocator does not yet support getDeviceStats")

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "memory_stats", refuse)
    with watched("cuda") as memory:
        pass
    assert not memory.short
