"""`verify` as somebody calls it who has one kernel and no registry: a script of ten lines, in a process of its own."""

import os
import subprocess
import sys

import pytest

import opcheck

KERNEL = """
@triton.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * factor, mask=at < n {less})
def target(x): y = torch.zeros_like(x); scale[(2,)](x, y, x.numel(), 3.0, BLOCK=64); return y
opcheck.verify(target, lambda x: x * 3.0, (torch.randn(100),), no_grad=["x"])
"""
BEFORE = "import os; os.environ['TRITON_INTERPRET'] = '1'\n"
IMPORTS = "import opcheck, torch, triton, triton.language as tl\n"


def run(folder, text):
    """Run a script from a file: Triton reads a kernel's source."""
    (folder / "notebook.py").write_text(text)
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "notebook.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=100
    )


def test_a_wrong_kernel_prints_the_table_and_raises(tmp_path):
    done = run(tmp_path, BEFORE + IMPORTS + KERNEL.format(less="- 1"))
    assert done.returncode == 1
    assert "verify::target  FAIL" in done.stdout
    assert "Tensor" in done.stdout
    assert "all in the last of" in done.stdout or "1 of 100 elements" in done.stdout
    assert done.stderr.rstrip().endswith("AuditFailed: verify::target: FAIL, as printed above")


@pytest.mark.parametrize("late", ["", BEFORE])
def test_without_the_interpreter_it_is_said_how_to_have_it(tmp_path, late):
    done = run(tmp_path, IMPORTS + late + KERNEL.format(less=""))
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("opcheck.errors.OpcheckError: verify: the arguments are on the CPU, and Triton was imported")
    assert "FAIL" not in done.stdout


def test_an_autograd_function_is_verified_by_its_class_and_by_its_apply():
    import torch

    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, by=2.0):
            ctx.by = by
            return x / by

        @staticmethod
        def backward(ctx, grad):
            return grad / ctx.by, None

    def reference(x, by=2.0):
        return x * (1.0 / by)

    for target in (Half, Half.apply):
        report = opcheck.verify(target, reference, opcheck.Sample(torch.linspace(-1, 1, 33), by=4.0), quiet=True)
        assert report.ok
        assert report.ops[0].op == "verify::Half"
        assert {row.tensor for row in report.ops[0].cases[0].tensors} == {"out", "grad x"}
        assert any("plain callable" in text for text in report.ops[0].not_covered)
    with pytest.raises(opcheck.AuditFailed, match="grad x"):
        opcheck.verify(Half, lambda x: x.detach() / 2.0 + x * 0.0, (torch.linspace(-1, 1, 33),), quiet=True)
