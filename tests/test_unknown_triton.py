"""On a Triton that the repair of the interpreter does not know, the tool runs, says so, and refuses bf16 verdicts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Loaded by every Python process of the audit before anything else: Triton tells another version, or lost a function
# that the repair replaces.
SITECUSTOMIZE = """
import importlib.abc
import importlib.util
import sys


class Altered(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != {module!r}:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        original = spec.loader.exec_module

        def exec_module(module):
            original(module)
            {change}

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Altered())
"""

FAKES = {
    "older": ("triton", 'module.__version__ = "3.8.0"', "Triton 3.8.0 is older than 3.9"),
    "changed": ("triton.runtime.interpreter", "del module._get_np_dtype", "lacks what the repair replaces"),
}


@pytest.mark.parametrize("fake", FAKES)
def test_bf16_is_refused_with_the_reason(tmp_path, fake):
    module, change, reason = FAKES[fake]
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE.format(module=module, change=change))
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-m", "opcheck", "audit", "ops::softmax", "--level", "quick", "--backend", "cpu", "-v"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if fake == "older":  # the interpreter itself is whole: everything else is audited
        assert done.returncode == 0, done.stdout + done.stderr
        assert "out (float16)" in done.stdout
    assert "not covered: bfloat16: " in done.stdout
    assert reason in done.stdout
    assert "(bfloat16)" not in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
