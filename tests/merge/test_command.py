"""The command: what it refuses, in one sentence each; its JSON; and that it needs no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.command_line import ROOT
from tests.merge.scene import IDENTITY, Repo, copied, decision, git, template

KEYS = {"acknowledged", "base", "commit", "exit_status", "head", "notes", "open", "points", "proofs", "schema"}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return template(tmp_path_factory.mktemp("start") / "repo")


@pytest.fixture
def repo(start, tmp_path, monkeypatch):
    made = copied(start, tmp_path / "repo")
    monkeypatch.chdir(made.root)
    return made


def refused(said, sentence):
    assert said.status == 4, said
    assert sentence in said.err
    assert "Traceback" not in said.err
    assert not said.out


def test_no_repository(repo, tmp_path):
    plain = Repo(root=tmp_path / "plain")
    plain.write("registry.toml", repo.registry)
    refused(plain.gate(), f"{plain.root} is not in a git repository; the gate compares with a commit of one")


def test_no_commit_yet(tmp_path, repo):
    fresh = Repo(root=tmp_path / "fresh")
    fresh.write("registry.toml", repo.registry)
    git(fresh.root, "init", "-q")
    refused(fresh.gate(), "has no commit yet; the gate compares with one")


def test_unknown_base(repo):
    refused(repo.gate("--base", "mian"), "--base mian: git knows no such commit; fetch it, or name another with --base")


def test_base_that_looks_like_a_flag(repo):
    refused(repo.gate("--base=--output=x"), "git knows no such commit")
    assert not (repo.root / "x").exists()


def test_base_without_common_history(repo):
    git(repo.root, "checkout", "-q", "--orphan", "island")
    repo.commit()
    refused(repo.gate(), "main and HEAD have no commit in common; name another base with --base")


def test_shallow_clone(repo, tmp_path):
    for number in range(2):
        repo.write("notes", f"{number}")
        repo.commit()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", "--no-single-branch", f"file://{repo.root}", str(clone))
    said = Repo(root=clone).gate("--base", "origin/main")
    refused(said, "this clone is shallow: fetch its history first, `git fetch --unshallow`")
    refused(Repo(root=clone).gate("--base", "HEAD~2"), "git knows no such commit; this clone is shallow")


def test_malformed_base(repo):
    repo.on_main()
    repo.write("registry.toml", repo.registry.replace("schema = 1", "schema ="))
    repo.commit()
    repo.back()
    git(repo.root, "merge", "-q", "-s", "ours", "main")
    said = repo.gate("--base", "main")
    refused(
        said, "cannot be compared with; mend it there, or name another base with --base:\nregistry.toml:2:9: not TOML"
    )


def test_malformed_head(repo):
    repo.declare("fudge_factor = 6.0", "fudge_facto = 6.0")
    refused(repo.gate(), 'registry.toml: op."mine::scale".numerics.float32.fudge_facto is not a limit of numerics')


def test_missing_evidence_file(repo):
    refused(
        repo.gate("--evidence", "h200.jsonl"), "there is no evidence at h200.jsonl; `opcheck audit --all` writes it"
    )


def test_evidence_that_is_none(repo):
    repo.write("broken.jsonl", '{"schema": 1,\n')
    refused(repo.gate("--evidence", "broken.jsonl"), "broken.jsonl:1 is not JSON; delete it, and audit again")
    (repo.root / "binary.jsonl").write_bytes(b"\xff\xfe")
    refused(repo.gate("--evidence", "binary.jsonl"), "binary.jsonl is not UTF-8")


def test_unknown_op_accepted(repo):
    refused(repo.gate("--accept-oracle", "mine::scal"), "'mine::scal' is not declared; did you mean mine::scale?")


@pytest.mark.parametrize(("flags", "sentence"), [
    (("--require", "sm_90"), "'sm_90' should be cpu, cuda, or an architecture such as cuda:sm_90"),
    (("--max-age", "14"), "'14' should be an age in hours, days or weeks"),
    (("--format", "yaml"), "invalid choice: 'yaml'"),
])  # fmt: skip
def test_flags(repo, flags, sentence):
    refused(repo.gate(*flags), sentence)


def test_two_registries_that_moved(repo):
    repo.on_main()
    for folder in ("a", "b"):
        repo.write(f"{folder}/registry.toml", repo.registry)
    repo.delete("registry.toml")
    repo.commit()
    git(repo.root, "checkout", "-q", "-B", "change")
    for folder in ("a", "b"):
        repo.delete(f"{folder}/registry.toml")
    repo.write("registry.toml", git(repo.root, "show", "main:a/registry.toml"))
    refused(repo.gate(), "head deletes a/registry.toml, b/registry.toml: which of them moved cannot be told")


def test_base_without_a_registry(repo):
    first = git(repo.root, "commit-tree", "-m", "Empty", git(repo.root, "mktree", "--missing").strip()).strip()
    git(repo.root, "branch", "empty", first)
    git(repo.root, "replace", "--graft", "main", first)
    said = repo.gate("--base", "empty")
    assert said.status == 0, said
    assert "has no registry.toml: all of it is new" in said.out


def test_the_usual_base_is_main(repo):
    assert (
        repo.gate("--base", "").out.splitlines()[0].endswith(f"into main ({git(repo.root, 'rev-parse', 'main')[:7]})")
    )


def test_the_registry_may_lie_below_the_root(repo, tmp_path):
    outer = Repo(root=tmp_path / "outer")
    outer.root.mkdir()
    (repo.root / ".git").rename(tmp_path / "unused")
    repo.root.rename(outer.root / "kernels")
    git(outer.root, "init", "-q", "-b", "main")
    outer.commit()
    git(outer.root, "checkout", "-q", "-b", "change")
    inner = Repo(root=outer.root / "kernels")
    inner.audit()
    assert inner.gate().status == 0
    inner.edit("mine/scale/reference.py", "x * by", "by * x")
    assert "golden (mine/scale/reference.py:18)" in inner.gate().out


def test_json(repo):
    repo.edit("mine/_helper.py", "128", "256")
    said = repo.gate("--format", "json")
    answer = decision(said)
    assert said.status == answer["exit_status"] == 1
    assert answer.keys() == KEYS
    assert (answer["open"], len(answer["commit"])) == (False, 40)
    assert [(point["rule"], point["op"]) for point in answer["points"]] == [
        ("evidence-stale", "mine::scale"), ("evidence-stale", "mine::total"),
    ]  # fmt: skip
    assert all(point["opens"].startswith("run `python -m opcheck audit") for point in answer["points"])
    assert [proof["state"] for proof in answer["proofs"]] == ["stale", "stale"]


def test_evidence_of_several_files(repo):
    repo.keep(repo.line("mine::scale"), file="a.jsonl")
    repo.keep(repo.line("mine::total"), file="b.jsonl")
    folder = repo.root / ".opcheck/evidence"
    (folder / "cpu-standard.jsonl").unlink()
    assert repo.gate("--evidence", str(folder / "a.jsonl")).status == 1
    assert repo.gate("--evidence", str(folder / "a.jsonl"), str(folder / "b.jsonl")).status == 0
    assert repo.gate("--evidence", str(folder / "a.jsonl"), "--evidence", str(folder / "b.jsonl")).status == 0
    assert repo.gate("--evidence", str(folder)).status == 0


def test_no_torch_is_imported(repo):
    environment = {**os.environ, **IDENTITY, "PYTHONPATH": str(ROOT)}
    command = (sys.executable, "-X", "importtime", "-m", "opcheck", "gate", "--base", "main", "--format", "json")
    done = subprocess.run(command, cwd=repo.root, env=environment, capture_output=True, text=True, check=False)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "opcheck" in imported
    assert not imported & {"torch", "triton", "numpy", "ml_dtypes"}
    assert json.loads(done.stdout)["proofs"]
