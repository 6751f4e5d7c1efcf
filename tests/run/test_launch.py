"""How the end of a process reads, and the end of its log."""

from __future__ import annotations

import signal

import pytest

from opcheck.run.launch import describe, open_log, tail


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        # A wait status holds the signal in its low 7 bits and the exit status in the byte above (wait(2)).
        (0, "exited with status 0 without an answer"),
        (3 << 8, "exited with status 3 without an answer"),
        (int(signal.SIGSEGV), "killed by SIGSEGV"),
        (int(signal.SIGSEGV) | 0x80, "killed by SIGSEGV"),
        (int(signal.SIGKILL), "killed by SIGKILL, as the kernel does when memory runs out"),
        (40, "killed by signal 40"),
        ("could not be forked: Cannot allocate memory", "could not be forked: Cannot allocate memory"),
    ],
)
def test_describe(status, sentence):
    assert describe(status) == sentence


def test_tail_of_a_long_log_is_its_end():
    with open_log() as log:
        log.write(b"a" * 500_000 + b"the end\n\n")
        assert tail(log) == "a" * 1993 + "the end"


def test_tail_replaces_what_is_no_text():
    with open_log() as log:
        log.write(b"\xff\xfe.")
        assert tail(log) == "\ufffd\ufffd."


def test_tail_of_a_crash_report_is_its_top_and_what_came_before():
    stack = "".join(f'  File "{depth}"\n' for depth in range(300))
    with open_log() as log:
        log.write(f"{'b' * 9000}\nFatal Python error: Aborted\n\n{stack}".encode())
        text = tail(log)
    assert len(text) == 2000
    assert text.startswith("b" * 499 + '\nFatal Python error: Aborted\n\n  File "0"\n')


def test_tail_leaves_out_the_extension_modules():
    with open_log() as log:
        log.write(b"Fatal Python error: Aborted\n\nExtension modules: numpy, torch (total: 2)\n")
        assert tail(log) == "Fatal Python error: Aborted"
