"""Tighter limits from evidence: what must be proposed, worked out by hand, and what must not."""

from __future__ import annotations

import pytest

from tests.command_line import opcheck
from tests.merge.scene import copied, template


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return template(tmp_path_factory.mktemp("start") / "repo")


@pytest.fixture
def repo(start, tmp_path, monkeypatch):
    made = copied(start, tmp_path / "repo")
    monkeypatch.chdir(made.root)
    return made


def tighten(repo, *flags):
    from tests.merge.scene import QUICKLY

    with QUICKLY:
        return opcheck("lint", "--tighten", "--registry", str(repo.root / "registry.toml"), *flags)


def prove(repo, **used):
    """Leave evidence that used these shares of its limits; float32 of total uses 0.9 of its fudge factor."""
    shares = {key.replace("_", " "): share for key, share in used.items()}
    repo.keep(repo.line("mine::scale", used=shares), repo.line("mine::total", used={"numerics float32": 0.9}))


def test_half_of_what_is_left_over_is_proposed(repo):
    # 6 x 0.35 x 2 = 4.2, which is above opcheck's own 4 for float32.
    prove(repo, numerics_float32=0.35)
    said = tighten(repo)
    assert said.status == 0
    assert said.out == (
        '[op."mine::scale".numerics.float32]\nfudge_factor = 4.2  # 6 so far, of which 35% was used at most\n'
    )


def test_what_needs_no_more_than_opchecks_own_number_can_go(repo):
    prove(repo, numerics_float32=0.2)  # 2.4, below 4
    assert tighten(repo).out == (
        '[op."mine::scale".numerics.float32]\n# delete fudge_factor: opcheck\'s own number will do\n'
        "# 6 so far, of which 20% was used at most\n"
    )


def test_room_is_what_it_says(repo):
    prove(repo, numerics_float32=0.75)
    assert not tighten(repo).out  # 6 x 0.75 x 2 is looser
    assert "fudge_factor = 4.5 " in tighten(repo, "--room", "1").out
    assert "fudge_factor = 5.7 " in tighten(repo, "--room", "1.25").out  # 5.625, rounded up


def test_nothing_is_ever_loosened(repo):
    prove(repo, numerics_float32=3.0, ulp_float32=7.0, ulp_bfloat16=2.0)
    said = tighten(repo)
    assert (said.status, said.out) == (0, "")
    assert "no limit of registry.toml is looser than the evidence needs" in said.err


def test_a_limit_tighter_than_opchecks_own_stays(repo):
    prove(repo, ulp_float32=0.01, ulp_bfloat16=0.01)  # max_ulp is 1.5, opcheck's own 2
    assert not tighten(repo).out


def test_defaults_need_evidence_of_every_op_that_they_hold_for(repo):
    repo.declare("fudge_factor = 2.0", 'fudge_factor = 8.0\nreason = "to begin with"')
    repo.keep(repo.line("mine::scale", used={"numerics bfloat16": 0.25}), repo.line("mine::total", used={}))
    assert "[defaults" not in tighten(repo).out
    repo.keep(
        repo.line("mine::scale", used={"numerics bfloat16": 0.25}),
        repo.line("mine::total", used={"numerics float32": 0.3}),
    )
    # narrow: 8 x 0.25 x 2 = 4; wide: 8 x 0.3 x 2 = 4.8
    assert "[defaults.numerics]\nfudge_factor = { narrow = 4, wide = 4.8 }  # 8 so far" in tighten(repo).out


def test_stale_and_missing_evidence_proposes_nothing(repo):
    prove(repo, numerics_float32=0.35)
    repo.edit("mine/scale/kernel.py", "return v * by", "return by * v")
    said = tighten(repo)
    assert (said.status, said.out) == (0, "")
    assert "nothing is proposed for mine::scale: its evidence on cpu is stale: mine/scale/kernel.py has" in said.err
    repo.edit("mine/_helper.py", "128", "256")
    assert tighten(repo).status == 5


def test_the_worst_backend_counts(repo):
    repo.declare('backends = ["cpu"]', 'backends = ["cpu", "cuda"]')
    repo.audit(used={"numerics float32": 0.35})
    assert tighten(repo).status == 5  # no evidence of a GPU
    of_gpu = {"backend": "cuda", "capability": "sm_90", "used": {"numerics float32": 0.45}}
    repo.keep(repo.line("mine::scale", **of_gpu), repo.line("mine::total", **of_gpu), file="h200.jsonl")
    assert "fudge_factor = 5.4 " in tighten(repo).out


def test_minima_of_coverage_rise_to_what_was_reached(repo):
    repo.declare("[[waiver]]", '[op."mine::scale".coverage]\nlines = 0.5\nreason = "new"\n[[waiver]]')
    repo.audit(coverage={"kernel lines": "11 of 14"})
    assert '[op."mine::scale".coverage]\nlines = 0.78  # 0.5 so far' in tighten(repo).out
    repo.audit(coverage={"kernel lines": "7 of 14"})
    assert not tighten(repo).out


@pytest.mark.parametrize("text", ["0.5", "many", "inf", "nan"])
def test_room_must_be_room(repo, text):
    said = tighten(repo, "--room", text)
    assert said.status == 4
    assert "should be a number of 1 or more" in said.err
