"""The protocol for agents names commands, flags and fields that there are."""

import re
from pathlib import Path

from opcheck.cli import _parser
from opcheck.commands.new import KINDS
from opcheck.core.gate import ExitStatus
from opcheck.core.report_schema import json_schema

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "skill" / "SKILL.md").read_text(encoding="utf-8")


def test_its_front_matter_has_name_and_description():
    _, head, _ = TEXT.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert set(fields) == {"name", "description"}
    assert fields["name"] == "opcheck"


def test_every_command_and_flag_is_there():
    (action,) = [item for item in _parser([])._actions if hasattr(item, "choices") and item.choices]
    for command, rest in re.findall(r"python -m opcheck (\w+)([^`\n]*)", TEXT):
        flags = action.choices[command]._option_string_actions
        for flag in re.findall(r"--[\w-]+", rest):
            assert flag in flags, f"{command} {flag}"
    assert "|".join(KINDS) in TEXT


def test_every_field_and_exit_status_is_there():
    words = set(re.findall(r'"(\w+)"', str(json_schema()).replace("'", '"')))
    for path in re.findall(r"`((?:ops\[\]\.[\w.\[\]]+)|next|looks_like|detail|law)`", TEXT):
        for name in re.findall(r"\w+", path):
            assert name in words, path
    listed = {int(number) for number in re.findall(r"^\| (\d) \|", TEXT, re.MULTILINE)}
    assert listed == {int(status) for status in ExitStatus}
