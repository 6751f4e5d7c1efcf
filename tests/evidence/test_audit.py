"""One real audit, and what becomes of its evidence when the project, the machine or the question changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from opcheck import cli
from opcheck.commands import recorded
from opcheck.core.evidence import Described, Evidence, from_text, key_of, to_text
from opcheck.core.report import to_json
from opcheck.core.verdict import Verdict
from opcheck.declared.file import document
from opcheck.evidence.answers import Answered, Answers, Asked
from opcheck.evidence.here import Here
from opcheck.evidence.store import Store
from opcheck.render import text
from opcheck.render.formats import json as as_json
from opcheck.session import Options, Session, Silent
from tests.evidence.project import OPS, copied, edit, touch, write

FILE = ".opcheck/evidence/cpu-quick.jsonl"
ASKED = Asked(backend="cpu", level="quick", budget=0.0)
PASSING = ("kept::double", "kept::lone", "kept::table")
ROWS = "kept_ops/_rows.py has changed"
POLICY = "registry.toml has changed for it"


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """The project after a whole audit, with the session that it was made in and its report."""
    root = tmp_path_factory.mktemp("kept") / "project"
    registry = write(root)
    options = Options(registry=registry, level="quick", backend="cpu", budget=0.0, workers=1, evidence=root / FILE)
    with Session.open(options) as session:
        report = session.audit(Silent())
        yield SimpleNamespace(root=root, session=session, report=report)


@pytest.fixture
def root(audited, tmp_path):
    """A copy of the audited project."""
    return copied(audited.root, tmp_path / "copy").parent


def lines(root):
    return {getattr(line, "op", ""): line for line in from_text((root / FILE).read_text())}


def rewrite(root, change):
    """Change each line of the evidence of an op, and give it the key of what it then rests on."""
    changed = [change(line) if isinstance(line, Evidence) else line for line in lines(root).values()]
    keyed = [replace(line, key=key_of(line.manifest, line.backend, line.capability)) for line in changed]
    (root / FILE).write_text(to_text(keyed))


def answers(root, asked=ASKED, **here):
    registry = root / "registry.toml"
    return Answers(Store(root / FILE), Here(root, **here), document(registry), asked)


def stale(root, asked=ASKED, **here):
    """Why each op that passed is not answered for; nothing where all are."""
    found = {op: answers(root, asked, **here).of(op) for op in PASSING}
    return {op.partition("::")[2]: item for op, item in found.items() if not isinstance(item, Answered)}


class TestWhatIsWrittenDown:
    def test_each_op_with_the_files_that_it_rests_on_and_no_other(self, audited):
        found = lines(audited.root)
        assert sorted(found) == ["", *(f"kept::{name}" for name in OPS)]
        own = {op: {Path(path).name for path in line.manifest.files} - {"__init__.py"} for op, line in found.items()}
        assert own == {
            "": {"_rows.py", "double.py", "factor.toml", "lone.py", "table.py", "units.py", "wrong.py"},
            "kept::double": {"_rows.py", "double.py"},
            "kept::lone": {"lone.py"},
            "kept::table": {"_rows.py", "factor.toml", "table.py", "units.py"},
            "kept::wrong": {"_rows.py", "wrong.py"},
        }

    def test_what_it_says_of_an_op(self, audited):
        line, report = lines(audited.root)["kept::double"], audited.report.ops[0]
        assert (line.op, line.backend, line.level, line.seeds) == ("kept::double", "cpu", "quick", (0,))
        assert line.whole
        assert line.exit_ok
        assert line.verdict == "PASS"
        assert line.again == ""
        assert line.case_ids == tuple(case.id for case in report.cases)
        assert line.dtypes == ("float32",)
        assert "normal" in line.families
        assert line.thresholds["numerics"]["float32"]["fudge_factor"] == 4.0
        row = max(report.cases[0].tensors, key=lambda row: row.target_error / row.threshold)
        assert 1 >= line.used["numerics float32"] >= row.target_error / row.threshold
        assert set(line.manifest.distributions) == {"python", "opcheck", "torch", "triton", "numpy", "ml_dtypes"}

    def test_the_reports_beside_it_are_those_of_the_audit(self, audited):
        store = Store(audited.root / FILE)
        for report in audited.report.ops:
            assert to_json(store.report(lines(audited.root)[report.op])) == to_json(report)

    def test_git_is_told_to_leave_it_alone(self, audited):
        assert (audited.root / ".opcheck/.gitignore").read_text().splitlines()[-1] == "*"


def limits(name):
    return f'\n[op."kept::{name}".numerics]\nproject_atol = 1e-12\nreason = "tried"\n'


EDITS = {
    "nothing": (lambda root: None, {}),
    "its own file": (
        lambda root: edit(root / "kept_ops/double.py", "x * 2", "x + x"),
        {"double": "kept_ops/double.py has changed"},
    ),
    "a comment in its own file": (
        lambda root: edit(root / "kept_ops/lone.py", "import", "# why\nimport"),
        {"lone": "kept_ops/lone.py has changed"},
    ),
    "a file of another op": (lambda root: edit(root / "kept_ops/wrong.py", "x * 3", "x * 2"), {}),
    "a shared helper": (
        lambda root: edit(root / "kept_ops/_rows.py", "x * 2", "x + x"), {"double": ROWS, "table": ROWS},
    ),
    "a file that is read": (
        lambda root: edit(root / "kept_ops/factor.toml", "2", "2.0"),
        {"table": "kept_ops/factor.toml has changed"},
    ),
    "the package itself": (
        lambda root: edit(root / "kept_ops/__init__.py", "", "X = 1"),
        dict.fromkeys(("double", "lone", "table"), "kept_ops/__init__.py has changed"),
    ),
    "a module of another package": (
        lambda root: edit(root / "kept_lib/units.py", "24", "53"),
        {"table": "kept_lib/units.py has changed"},
    ),
    "a file that is gone": (
        lambda root: (root / "kept_ops/lone.py").unlink(), {"lone": "kept_ops/lone.py is gone"},
    ),
    "a time of change": (lambda root: [touch(path) for path in root.rglob("*.*")], {}),
    "its limits": (lambda root: edit(root / "registry.toml", "\n\n[op", f"\n{limits('lone')}\n[op"), {"lone": POLICY}),
    "another op's limits": (lambda root: edit(root / "registry.toml", "\n\n[op", f"\n{limits('wrong')}\n[op"), {}),
    "its contract": (
        lambda root: edit(root / "registry.toml", 'double"]\n', 'double"]\nformula = "2 x"\n'), {"double": POLICY},
    ),
    "everyone's limits": (
        lambda root: edit(root / "registry.toml", "\n\n[op", "\n[defaults.numerics]\nproject_atol = 0.0\n[op"),
        dict.fromkeys(("double", "lone", "table"), POLICY),
    ),
    "a comment in the registry": (lambda root: edit(root / "registry.toml", "schema", "# ours\nschema"), {}),
    "the gate": (lambda root: edit(root / "registry.toml", "\n\n[op", '\n[gate]\naccept = ["PASS"]\n[op'), {}),
    "a file of nobody": (lambda root: (root / "notes.txt").write_text("nothing"), {}),
}  # fmt: skip


class TestWhatMakesItStale:
    @pytest.mark.parametrize(("change", "expected"), EDITS.values(), ids=EDITS)
    def test_an_edit(self, root, change, expected):
        change(root)
        assert stale(root) == expected

    def test_content_counts_and_not_the_time_alone(self, root):
        path = root / "kept_ops/lone.py"
        before = path.stat()
        path.write_bytes(path.read_bytes().replace(b"x * 2", b"x + x"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        assert list(stale(root)) == ["lone"]

    def test_another_checkout_of_the_same_files(self, root, tmp_path):
        # Every time of change differs, as after `git clone`.
        shutil.copytree(root, tmp_path / "clone", copy_function=shutil.copyfile)
        assert stale(tmp_path / "clone") == {}

    @pytest.mark.parametrize("name", ["TRITON_F32_DEFAULT", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "NVIDIA_TF32_OVERRIDE"])
    def test_a_variable(self, root, name):
        reason = f"{name} is '0', and was not set"
        assert stale(root, environ={name: "0"}) == dict.fromkeys(("double", "lone", "table"), reason)

    @pytest.mark.parametrize("name", ["HOME", "TRITON_CACHE_DIR"])
    def test_a_variable_that_changes_no_number(self, root, name):
        assert stale(root, environ={name: "/elsewhere"}) == {}

    def test_a_version(self, root):
        def older(line):
            versions = {**line.manifest.distributions, "torch": "2.0.1"}
            return replace(line, manifest=replace(line.manifest, distributions=versions))

        now = lines(root)["kept::lone"].manifest.distributions["torch"]
        rewrite(root, older)
        assert stale(root) == dict.fromkeys(("double", "lone", "table"), f"torch is {now}, and was 2.0.1")

    def test_opcheck_itself(self, root, tmp_path):
        package = tmp_path / "opcheck"
        original = Path(sys.modules["opcheck"].__file__).parent
        shutil.copytree(original, package, ignore=shutil.ignore_patterns("__pycache__"))
        assert stale(root, package=package) == {}
        edit(package / "checks/numerics.py", "import", "import")
        assert stale(root, package=package) == {}
        edit(package / "checks/numerics.py", "import", "# why\nimport")
        assert set(stale(root, package=package).values()) == {"opcheck itself has changed"}

    def test_a_line_edited_by_hand(self, root):
        text = (root / FILE).read_text()
        digest = lines(root)["kept::lone"].manifest.files["kept_ops/lone.py"]
        edit(root / "kept_ops/lone.py", "x * 2", "x + x")
        (root / FILE).write_text(text.replace(digest, Here(root).digest("kept_ops/lone.py")))
        assert stale(root) == {"lone": "its key is not that of its manifest: the line was edited"}

    @pytest.mark.parametrize("asked", [
        replace(ASKED, seed=1), replace(ASKED, budget=None), replace(ASKED, budget=1.0),
        replace(ASKED, level="standard"), replace(ASKED, backend="cuda"),
    ])  # fmt: skip
    def test_another_question(self, root, asked):
        assert list(stale(root, asked).values()) == [""] * 3

    def test_it_is_of_a_part_alone(self, root):
        rewrite(root, lambda line: replace(line, whole=False))
        assert list(stale(root).values()) == [""] * 3

    def test_its_report_is_gone(self, root):
        for path in (root / ".opcheck").rglob("kept-lone-*.json"):
            path.write_text("{")
        assert stale(root) == {"lone": "its report is gone"}

    def test_it_imports_what_it_did_not(self, root):
        assert answers(root).of("kept::lone", frozenset({"kept_ops/_rows.py"})) == "it now imports kept_ops/_rows.py"

    def test_it_failed(self, root):
        assert answers(root).of("kept::wrong") == "it failed"

    def test_an_inconclusive_one_meets_a_new_waiver(self, root):
        rewrite(root, lambda line: replace(line, verdict=Verdict.INCONCLUSIVE.value))
        assert stale(root) == {}
        waiver = 'schema = 1\n[[waiver]]\nop = "kept::l*"\ncheck = "numerics"\nreason = "known"\nuntil = 2999-01-01\n'
        edit(root / "registry.toml", "schema = 1\n", waiver)
        assert stale(root) == {"lone": "it was inconclusive, and a waiver may cover that"}


class TestTheRegistry:
    def test_it_need_not_be_imported_again(self, root):
        found = answers(root).described()
        assert isinstance(found, Described)
        assert sorted(found.ops) == [f"kept::{name}" for name in OPS]

    @pytest.mark.parametrize("name", ["kept_ops/more.py", "kept_ops/more/__init__.py", "torch.py", "kept_lib/more.py"])
    def test_a_new_module_may_register_an_op_or_hide_another(self, root, name):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("")
        assert answers(root).described() is None
        assert stale(root) == {}

    def test_a_new_file_of_another_kind_does_not(self, root):
        (root / "kept_ops/notes.md").write_text("nothing")
        (root / "results").mkdir()
        assert answers(root).described() is not None

    def test_other_modules_are_named(self, root):
        edit(root / "registry.toml", '["kept_ops"]', '["kept_ops", "json"]')
        assert answers(root).described() is None
        assert stale(root) == {}


class Count(Silent):
    """Counts the cases that are run, and interrupts after some."""

    def __init__(self, most=1000):
        self.most, self.total, self.ran = most, 0, []

    def planned(self, total):
        self.total = total

    def finished(self, case):
        self.ran.append(case.id)
        if len(self.ran) == self.most:
            raise KeyboardInterrupt


def again(audited, file, progress=None, **options):
    """Audit in the open session, with evidence in a file."""
    session = replace(audited.session, options=replace(audited.session.options, **options), store=Store(file))
    notes: list[str] = []
    return session.audit(progress or Silent(), notes.append), notes


def ops_of(progress):
    return {case.partition("[")[0] for case in progress.ran}


def timeless(report):
    """A report without what differs from one run to the next: the times that cases took."""
    ops = [replace(op, cases=tuple(replace(case, seconds=0.0) for case in op.cases)) for op in report.ops]
    return to_json(replace(report, ops=tuple(ops)))


class TestTheNextAudit:
    def test_only_what_failed_runs_again(self, audited, root):
        progress = Count()
        report, notes = again(audited, root / FILE, progress)
        assert ops_of(progress) == {"kept::wrong"}
        assert progress.total == len(progress.ran)
        assert timeless(report) == timeless(audited.report)
        assert notes[0] == "kept::wrong is audited again: it failed"
        assert notes[1].startswith("3 of 4 ops from the evidence of 2")
        assert notes[1].endswith("; --fresh audits again")

    def test_fresh_runs_all(self, audited, root):
        progress = Count(1)
        again(audited, root / FILE, progress, fresh=True)
        assert progress.total == sum(len(op.cases) for op in audited.report.ops)

    def test_ctrl_c_keeps_the_ops_that_were_finished(self, audited, tmp_path):
        file = tmp_path / "new.jsonl"
        done = len(audited.report.ops[0].cases)
        report, _ = again(audited, file, Count(done + 2))
        assert not report.complete
        assert report.exit_status == 2
        written = [line.op for line in from_text(file.read_text()) if isinstance(line, Evidence)]
        assert written == ["kept::double"]

    @pytest.mark.parametrize("options", [
        {"keyword": "normal"}, {"checks": ("structure",)}, {"exitfirst": True},
        {"cases": ("kept::lone[float32;n=4;normal;;;;0]@cpu",)},
    ])  # fmt: skip
    def test_a_part_neither_replaces_nor_makes_a_whole(self, audited, root, tmp_path, options):
        before = lines(root)["kept::lone"]
        for file in (root / FILE, tmp_path / "new.jsonl"):
            again(audited, file, ops=("kept::lone",), **options)
        found = [line for line in from_text((root / FILE).read_text()) if getattr(line, "op", "") == "kept::lone"]
        assert [line.whole for line in found] == [False, True]
        assert found[1] == before
        (part,) = (line for line in from_text((tmp_path / "new.jsonl").read_text()) if isinstance(line, Evidence))
        assert not part.whole
        assert not part.details

    def test_a_file_edited_while_it_is_audited(self, audited, tmp_path):
        path = audited.root / "kept_ops/lone.py"
        stat = path.stat()

        class Editor(Silent):
            def finished(self, case):
                touch(path)

        try:
            _, notes = again(audited, tmp_path / "new.jsonl", Editor(), ops=("kept::lone",))
        finally:
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert notes == ["kept_ops/lone.py was changed while kept::lone was audited: no evidence of it is kept"]
        assert not [line for line in from_text((tmp_path / "new.jsonl").read_text()) if isinstance(line, Evidence)]

    def test_opcheck_edited_while_it_audits(self, audited, tmp_path, monkeypatch):
        monkeypatch.setattr(Here, "edited", audited.session.started + 1)
        _, notes = again(audited, tmp_path / "new.jsonl", ops=("kept::lone",))
        assert notes == ["opcheck itself was changed while kept::lone was audited: no evidence of it is kept"]
        assert not (tmp_path / "new.jsonl").exists()

    def test_a_registry_that_does_not_import_is_looked_at_each_time(self, audited, tmp_path):
        broken = replace(audited.session.registry, failures={"kept_ops.more": "importing it raised"})
        report, _ = again(SimpleNamespace(session=replace(audited.session, registry=broken)), tmp_path / "new.jsonl",
                          ops=("kept::lone",))  # fmt: skip
        assert report.problems[0] == "importing it raised"
        (line,) = from_text((tmp_path / "new.jsonl").read_text())
        assert isinstance(line, Evidence)

    def test_nowhere_to_write(self, audited, tmp_path):
        (tmp_path / "taken").write_text("")
        report, notes = again(audited, tmp_path / "taken/new.jsonl", ops=("kept::lone",))
        assert report.exit_status == 0
        (note,) = notes
        assert note == f"cannot read {tmp_path / 'taken/new.jsonl'}: Not a directory; the audit goes on without it"


def run(root, *arguments):
    """Call opcheck in a process of its own, and return it with the modules that it imported."""
    environment = {name: value for name, value in os.environ.items() if name != "OPCHECK_EVIDENCE"}
    call = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "opcheck",
        "audit",
        "--level=quick",
        "--budget=0",
        "--backend=cpu",
    ]
    done = subprocess.run([*call, *arguments], cwd=root, env=environment, text=True, capture_output=True, timeout=60)
    told = done.stderr.splitlines()
    modules = {line.rpartition("|")[2].strip() for line in told if line.startswith("import time:")}
    return done, [line for line in told if not line.startswith("import time:")], modules


@pytest.fixture
def relied(root):
    """The copy, where the next audit would not run even what failed."""
    rewrite(root, lambda line: replace(line, again=""))
    return root


class TestTheCommand:
    def test_all_is_answered_without_torch(self, audited, relied):
        done, told, modules = run(relied, "--all")
        assert done.stdout == text.render(audited.report)
        assert done.returncode == audited.report.exit_status == 1
        (sentence,) = told
        assert sentence.startswith("opcheck: from the evidence of 20")
        assert sentence.endswith("; --fresh audits again")
        assert "opcheck.evidence.answers" in modules
        assert not modules & {"torch", "triton", "numpy", "ml_dtypes", "tqdm", "filelock", "opcheck.session"}

    def test_the_ops_that_passed(self, root):
        done, told, modules = run(root, *PASSING)
        assert done.returncode == 0
        assert len(told) == 1
        assert "torch" not in modules
        assert done.stdout.endswith("3 ops, 21 cases: 3 PASS; may merge (exit 0)\n")

    def test_a_report_in_full(self, audited, relied):
        done, _, modules = run(relied, "--all", "--format", "json", "--format", "table=table.txt", "-v")
        assert json.loads(done.stdout) == json.loads(as_json.render(audited.report))
        assert (relied / "table.txt").read_text() == text.render(audited.report, verbosity=1)
        assert "torch" not in modules

    @pytest.mark.parametrize("words", [
        (), ("-x",), ("--durations", "3"), ("--fresh",), ("--coverage",), ("-k", "normal"), ("--check", "numerics"),
        ("--seed", "1"),
    ])  # fmt: skip
    def test_which_questions_are_answered(self, relied, words):
        call = ["audit", *PASSING, "--registry", str(relied / "registry.toml"), "--evidence", str(relied / FILE)]
        arguments = cli._parser(call).parse_args([*call, "--level=quick", "--budget=0", "--backend=cpu", *words])
        found = recorded.answered(arguments, recorded.kept(arguments), brief=True)
        assert (found is not None) is (words in [(), ("-x",), ("--durations", "3")])

    @pytest.mark.parametrize("words", [("--evidence", "off"), ("--co",), ("--sanitize", "memcheck")])
    def test_for_what_no_evidence_is_kept(self, words):
        assert recorded.kept(cli._parser(["audit"]).parse_args(["audit", "--all", *words])) is None

    def test_evidence_of_one_s_own(self, relied, tmp_path):
        shutil.move(relied / ".opcheck/evidence", tmp_path / "elsewhere")
        done, told, modules = run(relied, *PASSING, "--evidence", str(tmp_path / "elsewhere/cpu-quick.jsonl"))
        assert done.returncode == 0
        assert len(told) == 1
        assert "torch" not in modules

    def test_evidence_of_one_s_own_that_is_none(self, root):
        done, told, _ = run(root, "--all", "--evidence", "registry.toml")
        assert done.returncode == 4
        assert told == ["opcheck: --evidence: registry.toml:1 is not JSON; delete it, or name another file"]
        assert (root / "registry.toml").read_text().startswith("schema = 1")
