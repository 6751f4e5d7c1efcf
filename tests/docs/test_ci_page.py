"""The action, the hook and the examples of docs/ci.md: YAML of the right form, which keep what the page promises."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from opcheck.cli import _parser
from opcheck.commands.output import FORMATS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/ci.md").read_text()
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```yaml\n(.*?)```", PAGE, re.DOTALL))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


def workflow():
    found = yaml.safe_load(FILES[".github/workflows/opcheck.yml"])
    return {"on": found.pop(True), **found}  # YAML 1.1 takes `on` for a truth value


def commands(text):
    """The calls of opcheck in a script, as arguments."""
    joined = re.sub(r"\\\n\s*", " ", text)
    return [shlex.split(line.partition(" || ")[0])[3:] for line in joined.splitlines() if "python -m opcheck" in line]


def test_the_workflow_runs_in_the_queue_and_is_never_left_out():
    found = workflow()
    assert {"pull_request", "merge_group"} <= found["on"].keys()
    assert not re.search(r"paths(-ignore)?:", FILES[".github/workflows/opcheck.yml"])


def test_the_gate_always_runs_and_waits_for_every_other_job():
    jobs = workflow()["jobs"]
    gate = jobs.pop("gate")
    assert gate["if"] == "always()"
    assert sorted(gate["needs"]) == sorted(jobs)
    runs = " ".join(step.get("run", "") for step in gate["steps"])
    assert {f"evidence/{name}/evidence.jsonl" for name in jobs} == set(re.findall(r"evidence/\S+", runs))
    assert "opcheck audit" not in runs


def test_the_gpu_job_only_gives_evidence():
    steps = workflow()["jobs"]["gpu"]["steps"]
    assert any(step.get("continue-on-error") for step in steps)
    assert not any("opcheck gate" in step.get("run", "") for step in steps)


def test_the_workflow_gives_the_action_inputs_that_it_has():
    for job in workflow()["jobs"].values():
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            if step.get("uses", "").startswith("OWNER/opcheck"):
                assert set(step["with"]) <= set(ACTION["inputs"])


def test_the_action_is_composite_and_each_of_its_steps_is_whole():
    assert ACTION["runs"]["using"] == "composite"
    assert all({"description", "default"} <= item.keys() for item in ACTION["inputs"].values())
    for step in ACTION["runs"]["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert "run" not in step or step["shell"] == "bash"
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text()))
    assert used == set(ACTION["inputs"])


def test_the_action_puts_no_input_into_a_script():
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_action_uploads_what_the_audit_wrote_even_where_it_failed():
    upload = next(step for step in ACTION["runs"]["steps"] if "upload-artifact" in step.get("uses", ""))
    assert upload["if"] == "always()"


@pytest.mark.parametrize("text", [
    *(step["run"] for step in ACTION["runs"]["steps"] if "opcheck audit" in step.get("run", "")),
    *(line for job in yaml.safe_load(FILES[".gitlab-ci.yml"]).values() if isinstance(job, dict)
      for line in job["script"] if "opcheck audit" in line),
])  # fmt: skip
def test_the_calls_of_audit_are_ones_that_it_takes(text):
    (words,) = commands(text)
    words = [word for word in words if word != "${words[@]}"]
    words = ["standard" if word == "$OPCHECK_LEVEL" else word for word in words]
    arguments = _parser(words).parse_args(words)
    assert {item.partition("=")[0] for item in arguments.format} <= set(FORMATS)


@pytest.mark.parametrize("script", [
    [step.get("run", "") for step in workflow()["jobs"]["gate"]["steps"]],
    yaml.safe_load(FILES[".gitlab-ci.yml"])["gate"]["script"],
])  # fmt: skip
def test_the_calls_of_gate_are_ones_that_it_takes(script):
    (words,) = (call for line in script for call in commands(line))
    arguments = _parser(words).parse_args(words)
    assert [str(item) for item in arguments.evidence] == [word for word in words if word.endswith(".jsonl")]
    assert arguments.explain


def test_gitlab_s_reports_are_the_files_that_are_written():
    job = yaml.safe_load(FILES[".gitlab-ci.yml"])["cpu"]
    for name in job["artifacts"]["reports"].values():
        assert f"={name}" in " ".join(job["script"])


def test_the_page_explains_every_format():
    listed = {
        name for row in re.findall(r"^\| (`.*?`) \| ", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert listed == set(FORMATS)


def test_the_hook_that_the_page_names_exists_and_calls_lint():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (repository,) = yaml.safe_load(FILES[".pre-commit-config.yaml"])["repos"]
    assert [item["id"] for item in repository["hooks"]] == [hook["id"]]
    _, _, module, *words = hook["entry"].split()
    assert module == "opcheck"
    assert _parser(words).parse_args(words).static
    assert re.search(hook["files"], "ops/softmax/kernel.py")
    assert re.search(hook["files"], "registry.toml")
    assert not re.search(hook["files"], "README.md")
