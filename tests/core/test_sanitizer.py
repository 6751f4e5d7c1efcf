"""What compute-sanitizer and instrumented kernels print, as reports; the samples follow NVIDIA's manual."""

from pathlib import Path

import pytest

from opcheck.core.sanitizer import Report, read_assertions, read_log

LOGS = Path(__file__).parent / "sanitizer_logs"


def read(name):
    return read_log((LOGS / f"{name}.txt").read_text())


def test_memcheck():
    reports, errors, problem = read("memcheck")
    assert (errors, problem) == (124, "")
    assert reports == (
        Report(
            kind="Invalid __global__ write of size 4 bytes",
            kernel="scale_unbounded(const float *, float *, int, int)",
            where="/home/me/kernels.cu:10",
            thread=(5, 0, 0),
            block=(5, 0, 0),
            address="0x7f6510c00a14",
            near="is out of bounds and is 1 bytes after the nearest allocation at 0x7f6510c00000 of size 2,580 bytes",
            size=4,
            count=2,
        ),
        Report(
            kind="Invalid __shared__ read of size 16 bytes",
            kernel="_kernel",
            thread=(0, 1, 0),
            block=(0, 0, 2),
            address="0x4001",
            near="is misaligned",
            size=16,
        ),
    )


def test_memcheck_of_older_toolkits():
    (report,), errors, problem = read("memcheck_old")
    assert (errors, problem) == (1, "")
    assert (report.kernel, report.where) == ("affine(int*,int*)", "/home/me/kernels.cu:42")
    assert (report.thread, report.block) == ((31, 0, 0), (7, 1, 0))
    assert (report.address, report.near) == ("0x7f3c7ec000fc", "is out of bounds")


def test_racecheck():
    (error, warning), errors, problem = read("racecheck")
    assert (errors, problem) == (1, "")
    assert (error.grade, error.kind, error.count) == ("error", "Race between a write and a read access", 508)
    assert error.kernel == "void reverse_blocks<(bool)0>(const float *, float *, int, int)"
    assert (error.where, error.other) == ("/home/me/kernels.cu:17", "read at /home/me/kernels.cu:19")
    assert (warning.grade, warning.kernel, warning.where) == ("warning", "other_kernel", "")
    assert (warning.other, warning.count) == ("write at other_kernel", 1)


def test_initcheck():
    (report,), errors, _ = read("initcheck")
    assert errors == 1
    assert (report.kind, report.kernel) == ("Uninitialized __global__ memory read of size 4 bytes", "sum(int *)")
    assert (report.where, report.block, report.size) == ("/home/me/sum.cu:41", (1, 0, 0), 4)


def test_synccheck():
    (report,), errors, _ = read("synccheck")
    assert errors == 1
    assert report.kind == "Barrier error detected. Divergent thread(s) in warp"
    assert (report.kernel, report.where, report.thread) == ("illegal_sync_kernel(int *)", "sync.cu:61", (19, 0, 0))


@pytest.mark.parametrize("name", ["clean", "clean_races"])
def test_no_error(name):
    assert read(name) == ((), 0, "")


def test_a_tool_that_saw_no_kernel_has_no_result():
    assert read("no_cuda") == ((), 0, "Error: Target application terminated before first instrumented API call")


@pytest.mark.parametrize("text", ["", "Segmentation fault", "========= COMPUTE-SANITIZER\n"])
def test_without_a_summary_there_is_no_result(text):
    assert read_log(text) == ((), 0, "the tool printed no summary")


def test_a_kind_that_nobody_knows_is_not_lost():
    text = "========= Something new happened\n=========     at k+0x10\n=========\n========= ERROR SUMMARY: 1 error\n"
    assert read_log(text) == ((Report(kind="Something new happened", kernel="k"),), 1, "")


def test_a_remark_is_no_report():
    text = "========= COMPUTE-SANITIZER\n========= A remark about this device\n========= ERROR SUMMARY: 0 errors\n"
    assert read_log(text) == ((), 0, "")


def test_device_assertions():
    line = "/home/me/k.py:12: kernel: block: [2,0,0], thread: [{},0,0] Assertion `Read after write race` failed."
    (report,) = read_assertions("\n".join(["other words", line.format(0), line.format(31), ""]))
    assert (report.kind, report.where, report.count) == ("Read after write race", "/home/me/k.py:12", 2)
    assert (report.kernel, report.block, report.thread) == ("kernel", (2, 0, 0), (0, 0, 0))
    assert read_assertions("AssertionError: no") == ()
