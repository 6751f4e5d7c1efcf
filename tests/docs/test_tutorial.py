"""The tutorial, done as it says: its files written, its changes made, its commands run, its lines looked for."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
STEP = re.compile(r"<!-- (?P<what>run|file|change): (?P<about>[^>]*) -->\n```\w+\n(?P<text>.*?)```", re.DOTALL)


def steps():
    return [(match["what"], match["about"], match["text"]) for match in STEP.finditer(PAGE)]


def test_every_block_is_a_step():
    assert len(steps()) == PAGE.count("```") // 2
    assert [what for what, _, _ in steps()].count("run") >= 5


@pytest.mark.slow
def test_it_goes_as_the_page_says(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPCHECK_DISABLE_PLUGINS": "1"}
    for what, about, text in steps():
        path = tmp_path / about
        if what == "file":
            path.write_text(text)
        elif what == "change":
            old, new = (line[1:] for line in text.splitlines())
            assert path.read_text().count(old) == 1, old
            path.write_text(path.read_text().replace(old, new))
        else:
            command, *shown = text.splitlines()
            arguments = shlex.split(command.removeprefix("$ python "))
            done = subprocess.run(
                [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == int(about.removeprefix("exit ")), command + done.stdout + done.stderr
            for line in shown:
                assert line in done.stdout, f"{command}: {line}\n{done.stdout}"
