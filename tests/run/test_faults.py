"""A kernel's fault is raised when the device is waited for, and belongs to the role that launched it."""

import pytest
import torch

from opcheck.run import refusal, roles
from opcheck.run.roles import RoleFailed, run_role

from .surrounded import CASE, CONTRACT, CPU, plain


def square(x):
    return x * x


@pytest.fixture
def faults(monkeypatch):
    """Have the device fail when it is waited for the nth time, or each of several."""

    def fail_at(*numbers):
        waits = iter(range(1, 100))

        def settle(device):
            if next(waits) in numbers:
                raise RuntimeError("CUDA error: misaligned address")

        for module in (roles, refusal):
            monkeypatch.setattr(module, "settle", settle)

    return fail_at


def test_of_a_forward(faults):
    faults(1)
    with pytest.raises(RoleFailed, match=r"target raised RuntimeError in its forward.*misaligned"):
        run_role(plain(square, square), CASE, "target", CPU)


def test_of_a_backward(faults):
    faults(2)
    run = run_role(plain(square, square), CASE, "target", CPU)
    assert "target raised RuntimeError in its backward" in str(run.backward)
    faults(2)
    with pytest.raises(RoleFailed, match=r"golden raised RuntimeError in its backward"):
        run_role(plain(square, square), CASE, "golden", CPU)


def test_of_a_backward_after_which_nothing_runs(faults):
    """torch's embedding_backward_feature_kernel at dim=0: the outputs lie on a device that answers no more."""
    faults(*range(2, 100))
    with pytest.raises(RoleFailed, match=r"target raised RuntimeError in its backward.*misaligned"):
        run_role(plain(square, square), CASE, "target", CPU)


def test_it_is_no_refusal(faults):
    faults(1)
    found = refusal.refusal(plain(square, square), CONTRACT, CASE, CPU)
    assert found.returned == "a fault of the device (CUDA error: misaligned address)"


@pytest.mark.parametrize(("kind", "waits"), [("cuda", 1), ("cpu", 0)])
def test_only_a_gpu_is_waited_for(monkeypatch, kind, waits):
    seen = []
    monkeypatch.setattr(torch.cuda, "synchronize", seen.append)
    roles.settle(torch.device(kind))
    assert len(seen) == waits
