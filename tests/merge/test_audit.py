"""From a real audit of a real op to a merge: the evidence that an audit leaves is what the gate reads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.command_line import ROOT
from tests.merge.scene import Repo, git, opcheck

OP = """import opcheck
import torch


def reference(x):
    return x * 2


def samples(case):
    return opcheck.Sample(case.tensor("n", name="x"))


@opcheck.register("tiny::twice", reference=reference, golden=reference, samples=samples)
def twice(x: torch.Tensor) -> torch.Tensor:
    return x + x


twice.register_fake(torch.empty_like)
twice.register_autograd(lambda ctx, grad: 2 * grad)
"""
REGISTRY = """schema = 1
[registry]
modules = ["tiny"]
[gate]
level = "quick"
[op."tiny::twice"]
kind = "contraction"
dtypes = ["float32"]
dims = ["n"]
empty = ["n"]
sizes = { n = [4] }
nonfinite = { undefined = "three cases are enough" }
"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    repo = Repo(root=tmp_path_factory.mktemp("audited"))
    repo.write("registry.toml", REGISTRY)
    repo.write("tiny.py", OP)
    repo.write(".gitignore", ".opcheck\n__pycache__\n")
    git(repo.root, "init", "-q", "-b", "main")
    repo.commit("Start")
    command = (sys.executable, "-m", "opcheck", "audit", "--all", "--level", "quick", "--budget", "0", "-n", "1",
               "--backend", "cpu", "--registry", str(repo.root / "registry.toml"))  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "OPCHECK_EVIDENCE"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return repo


def asked(repo):
    return opcheck("gate", "--registry", str(repo.root / "registry.toml"), "--base", "main", "--explain")


def test_what_was_audited_may_merge_until_it_is_edited(audited):
    said = asked(audited)
    assert (said.status, said.err) == (0, "")
    assert "tiny::twice  cpu        PASS" in said.out
    audited.edit("tiny.py", "return x + x", "return x + x + 1")
    said = asked(audited)
    assert said.status == 1
    assert "CLOSED  evidence-stale: tiny::twice: its evidence on cpu is stale: tiny.py has changed" in said.out
    assert "run `python -m opcheck audit --backend cpu --level quick 'tiny::twice'`" in said.out
    audited.edit("tiny.py", "return x + x + 1", "return x + x")
    assert asked(audited).status == 0


def test_a_wrong_answer_and_an_oracle_that_agrees_with_it(audited):
    audited.edit("tiny.py", "return x * 2", "return x * 3")
    assert (
        "what it is held to changed, and its target did not: reference (tiny.py:5), golden (tiny.py:5)"
        in asked(audited).out
    )
    audited.edit("tiny.py", "return x * 3", "return x * 2")
