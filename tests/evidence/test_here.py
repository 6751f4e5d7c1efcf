"""What is found of a folder, a machine and sources, on trees made by hand."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from opcheck.backends.present import backend_of, driver_version, gpus
from opcheck.core.verdict import Verdict
from opcheck.evidence import answers as answering
from opcheck.evidence.answers import Answered, Answers, Asked
from opcheck.evidence.here import Here, importable
from opcheck.evidence.includes import included
from opcheck.evidence.store import Store
from opcheck.session.summing import again
from tests.core.reports import FAIL, INCONCLUSIVE, case, finding, passing
from tests.core.test_evidence import line


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def test_a_file_s_digest_is_of_its_bytes(tmp_path):
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    here = Here(tmp_path)
    assert here.digest("a.py") == hashlib.blake2b(b"x = 1\n", digest_size=16).hexdigest()
    assert here.digest("b.py") == ""
    assert here.stat("b.py") is None


def test_a_file_is_read_only_where_its_size_or_time_is_another(tmp_path):
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    size, when = Here(tmp_path).stat("a.py")
    assert Here(tmp_path).digest("a.py", (size, when), "known") == "known"
    for other in ((size, when + 1), (size + 1, when)):
        assert Here(tmp_path).digest("a.py", other, "known") == Here(tmp_path).digest("a.py")


def test_what_can_be_imported_from_a_folder(tmp_path):
    names = ["a.py", "native.so", "notes.md", "pack/__init__.py", "data/x.toml", "__pycache__/a.pyc", "stub.pyi"]
    tree(tmp_path, dict.fromkeys(names, ""))
    assert importable(tmp_path) == ["a.py", "native.so", "pack"]
    assert importable(tmp_path / "gone") == []


def test_headers_are_found_in_sources(tmp_path):
    tree(tmp_path, {
        "k/kernel.cu": '#include <cuda.h>\n#include "near.cuh"\n  #  include "../common/far.h"\n// "not.h"\n',
        "k/near.cuh": '#include "kernel.cu"\n#include "deep/x.hpp"\n#include "gone.h"\n', "k/deep/x.hpp": "",
        "common/far.h": "", "k/not.h": "", "k/a.py": '#include "not.h"',
    })  # fmt: skip
    assert included(tmp_path, {"k/kernel.cu", "k/a.py"}) == {"k/near.cuh", "k/deep/x.hpp", "common/far.h"}
    assert included(tmp_path, {"k/a.py"}) == set()


INFORMATION = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 57\nGPU UUID: \t GPU-0\n"
VERSION = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version:  gcc 13.3.0\n"
)


def test_gpus_are_known_without_torch(tmp_path):
    tree(tmp_path, {"gpus/0000:04:00.0/information": INFORMATION, "version": VERSION})
    assert gpus(tmp_path) == {"NVIDIA H200"}
    assert driver_version(tmp_path) == "580.65.06"
    assert (gpus(tmp_path / "none"), driver_version(tmp_path / "none")) == (frozenset(), "")
    assert [backend_of(name) for name in ("cpu", "cuda")] == ["cpu", "cuda"]


@pytest.mark.parametrize(("present", "answered"), [({"NVIDIA H200"}, True), ({"NVIDIA H100"}, False), (set(), False)])
def test_a_gpu_s_evidence_is_good_where_there_is_such_a_gpu(tmp_path, monkeypatch, present, answered):
    monkeypatch.setattr(answering, "gpus", lambda: frozenset(present))
    monkeypatch.setattr(answering, "fallen", lambda *of: "")
    store = Store(tmp_path / "cuda-standard.jsonl")
    store.put(line(backend="cuda", device="NVIDIA H200", capability="sm_90"), passing())
    found = Answers(store, Here(tmp_path), {}, Asked(backend="cuda")).of("ops::a")
    assert isinstance(found, Answered) is answered


def report(**changes):
    return replace(passing(), cases=(case("ops::rms_norm", FAIL, findings=(finding(**changes),)),))


@pytest.mark.parametrize(("changes", "died", "unlearnt", "why"), [
    ({"verdict": FAIL}, False, "", "it failed"),
    ({"verdict": FAIL, "waived": "known"}, False, "", "a waiver covers what it failed in"),
    ({"verdict": INCONCLUSIVE, "waived": "known"}, False, "", "a waiver covers what it failed in"),
    ({"verdict": INCONCLUSIVE}, True, "", "a worker died over it"),
    ({"verdict": INCONCLUSIVE, "check": "opcheck"}, False, "", "opcheck itself broke over it"),
    ({}, False, "it hung", "it could not be run once before its cases were planned: it hung"),
    ({"verdict": INCONCLUSIVE}, False, "", ""),
    ({"verdict": Verdict.PASS_WITH_LIMITATIONS}, False, "", ""),
    ({}, False, "", ""),
])  # fmt: skip
def test_what_is_run_again_whatever_its_key_says(changes, died, unlearnt, why):
    assert again(report(**changes), died=died, unlearnt=unlearnt) == why
