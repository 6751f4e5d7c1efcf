"""The evidence file: what is refused, put aside, shared and swept."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from opcheck.core.evidence import from_text
from opcheck.core.report import to_json
from opcheck.errors import OpcheckError
from opcheck.evidence.store import Store, default_file
from tests.core.reports import passing
from tests.core.test_evidence import DESCRIBED, NEW, OLD, line


@pytest.fixture
def file(tmp_path):
    return default_file(tmp_path, "cpu", "standard")


def test_what_is_put_is_there_for_the_next(file):
    Store(file).put(line(), passing())
    store = Store(file)
    (kept,) = store.evidence("ops::a", "cpu", "standard")
    assert replace(kept, details="") == line()
    assert to_json(store.report(kept)) == to_json(passing())
    assert store.report(kept, whole=False).cases[0].findings == ()
    assert not store.problem


def test_the_newest_first_and_of_the_question_alone(file):
    store = Store(file)
    for item in (
        line(finished=OLD, capability="a"), line(finished=NEW, capability="b"), line(whole=False), line(level="full"),
        line(backend="cuda"), line(op="ops::b"), DESCRIBED,
    ):  # fmt: skip
        store.put(item)
    assert [item.capability for item in Store(file).evidence("ops::a", "cpu", "standard")] == ["b", "a"]
    assert Store(file).described("cpu") == (DESCRIBED,)
    assert Store(file).described("cuda") == ()


def test_reports_that_no_line_names_are_deleted(file):
    store = Store(file)
    store.put(line(), passing())
    store.put(line(op="ops::b"), passing())
    manifest = replace(line().manifest, asked="other")
    store.put(line(manifest=manifest), passing())
    names = sorted(path.name.partition("-")[0] for path in file.parent.rglob("*.json"))
    assert len(names) == 2
    assert all(store.report(item) is not None for item in Store(file).lines)


def test_two_audits_at_once_lose_nothing(file):
    def audit(machine):
        store = Store(file)
        for number in range(8):
            store.put(line(op=f"ops::{machine}{number}"), passing())
        return store.problem

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(audit, "abcd")) == [""] * 4
    assert [item.op for item in Store(file).lines] == [f"ops::{machine}{at}" for machine in "abcd" for at in range(8)]
    assert all(Store(file).report(item) is not None for item in Store(file).lines)
    assert not list(file.parent.rglob("*.tmp"))


BAD = [
    (b"{", ":1 is not JSON"), (b'{"schema": 0}', ":1 is of schema 0; this opcheck reads 1"), (b"\xff", " is not UTF-8"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "what"), BAD)
def test_a_file_that_cannot_be_read_is_put_aside_and_a_new_one_begun(file, content, what):
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    store = Store(file)
    assert store.problem == f"{file}{what}; it is now cpu-standard.unreadable, to be deleted, and a new one is begun"
    assert file.with_suffix(".unreadable").read_bytes() == content
    store.put(line())
    assert Store(file).lines == (line(),)


@pytest.mark.parametrize(("content", "what"), BAD)
def test_one_that_the_user_names_stays_where_it_is(file, content, what):
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    with pytest.raises(OpcheckError) as error:
        Store(file, named=True)
    assert str(error.value) == f"--evidence: {file}{what}; delete it, or name another file"
    assert file.read_bytes() == content


def test_a_folder_is_no_evidence(tmp_path):
    with pytest.raises(OpcheckError, match=r"^cannot read .*: Is a directory$"):
        Store(tmp_path, named=True)
    store = Store(tmp_path)
    assert store.problem == f"cannot read {tmp_path}: Is a directory; the audit goes on without it"
    assert not store.kept


def test_a_full_disk_keeps_what_was_kept_and_says_so_once(file, monkeypatch):
    store = Store(file)
    store.put(line(), passing())
    before = file.read_text()

    def full(*names):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        store.put(line(op="ops::b"), passing())
    assert store.problem == (
        f"cannot write {file}: No space left on device; the audit goes on, and the next one starts from what was kept "
        f"before"
    )
    assert not store.kept
    assert file.read_text() == before
    assert not list(file.parent.rglob("*.tmp"))
    store.put(line(op="ops::c"))
    assert file.read_text() == before


def test_a_place_that_is_taken(tmp_path):
    (tmp_path / ".opcheck").write_text("")
    store = Store(tmp_path / ".opcheck/evidence/cpu-standard.jsonl")
    assert not store.kept
    assert store.problem.endswith(": Not a directory; the audit goes on without it")


def test_a_line_that_names_a_file_elsewhere_deletes_nothing(file, tmp_path):
    outside = tmp_path / "precious.json"
    outside.write_text("mine")
    store = Store(file)
    store.put(replace(line(), details="../../precious.json"))
    store.put(line(), passing())
    assert outside.read_text() == "mine"
    assert [item.op for item in from_text(file.read_text())] == ["ops::a"]


def test_git_leaves_the_folder_alone_and_a_named_file_s_folder_is_the_user_s(file, tmp_path):
    Store(file).put(line())
    assert (tmp_path / ".opcheck/.gitignore").read_text().split()[-1] == "*"
    Store(tmp_path / "mine/cpu.jsonl", named=True).put(line())
    assert not list((tmp_path / "mine").glob(".gitignore"))
