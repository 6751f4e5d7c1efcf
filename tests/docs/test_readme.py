"""The README's first kernel, typed in and run as it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE = re.compile(r"<!-- file: (?P<name>\S+) -->\n```\w+\n(?P<text>.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def typed_in(tmp_path_factory):
    """A folder with every file that the README tells a newcomer to write."""
    folder = tmp_path_factory.mktemp("newcomer")
    (folder / "my_ops").mkdir()
    (folder / "my_ops" / "__init__.py").touch()
    for match in FILE.finditer((ROOT / "README.md").read_text()):
        (folder / match["name"]).write_text(match["text"])
    return folder


def run(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def test_the_first_kernel_passes_and_its_broken_twin_does_not(typed_in):
    audit = ("-m", "opcheck", "audit", "--all", "--backend", "cpu")
    right = run(typed_in, *audit)
    assert right.returncode == 0, right.stdout + right.stderr
    assert "my_ops::scaled_silu  PASS\n" in right.stdout
    assert "may merge (exit 0)" in right.stdout

    kernel = typed_in / "my_ops" / "scaled_silu.py"
    text = kernel.read_text()
    assert text.count("scale, mask=at < n)") == 1
    kernel.write_text(text.replace("scale, mask=at < n)", "scale, mask=at < n - 1)"))
    wrong = run(typed_in, *audit, "--level", "quick")
    kernel.write_text(text)
    assert wrong.returncode == 1, wrong.stdout + wrong.stderr
    assert "all in the last of n" in wrong.stdout
    assert "Traceback" not in wrong.stdout + wrong.stderr


def test_the_quick_template_prints_its_table(typed_in):
    done = run(typed_in, "quick.py")
    assert done.returncode == 0, done.stderr
    assert "may merge (exit 0)" in done.stdout


def test_every_file_that_the_readme_names_is_there():
    for name in re.findall(
        r"`((?:docs|opcheck|tests|benchmarks)/[\w./-]+|CONTRIBUTING\.md)`", (ROOT / "README.md").read_text()
    ):
        assert (ROOT / name).exists(), name
