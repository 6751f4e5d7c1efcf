"""Every format: found by walking, well-formed whatever the words are, valid by its public schema, bounded in length."""

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace

import jsonschema
import pytest
import xmlschema
from hypothesis import given, settings
from markdown_it import MarkdownIt

from opcheck.core.report import AuditReport, to_json
from opcheck.core.verdict import Verdict
from opcheck.render.formats import names, rendered
from opcheck.render.formats.markdown import page
from opcheck.render.view import View
from tests.core.reports import FAIL, INCONCLUSIVE, case, failing, finding, passing, report
from tests.core.test_report import strict
from tests.render import hostile, schemas

VIEW = View(root="/r", folder="sub")
ASKED = ("concise", "github", "gitlab", "json", "jsonl", "junit", "markdown", "sarif", "table")
XSD = xmlschema.XMLSchema(schemas.JUNIT)
SARIF, GITLAB = (jsonschema.Draft202012Validator(schema) for schema in (schemas.SARIF, schemas.GITLAB))
COMMONMARK = MarkdownIt("commonmark", {"html": True}).enable("table")
TAGS = {"<!-- opcheck -->", *(f"<{end}{tag}>" for tag in ("details", "summary", "code") for end in ("", "/"))}
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def closed(*ops, **changes):
    return report(*ops, verdict=FAIL, exit_status=1, **changes)


def told(found: AuditReport) -> Counter:
    """How often each kind of thing is wrong, by hand: what formats with a line for each must have as many of."""
    kinds = {
        (at, item.check, item.tensor, item.law if item.check == "library" else "", item.verdict, item.place,
         bool(item.waived))
        for at, op in enumerate(found.ops) for case in op.cases for item in case.findings
        if item.verdict in (FAIL, INCONCLUSIVE)
    }  # fmt: skip
    failures = sum(kind[4] is FAIL and not kind[6] for kind in kinds)
    doubts = sum(kind[4] is INCONCLUSIVE and not kind[6] for kind in kinds)
    unproven = sum(len(op.problems) for op in found.ops)
    waived = sum(kind[6] for kind in kinds)
    return Counter(error=failures + len(found.problems), warning=doubts + unproven, notice=waived)


def valid_unicode(data):
    """Whether no string has half a character in it: such a one has no UTF-8."""
    return json.dumps(data, ensure_ascii=False).encode()


def test_the_formats_are_those_that_were_asked_for():
    assert set(ASKED) <= set(names())
    assert names()[0] == "table"


def github_is_well_formed(found):
    """Each annotation is one line, with its place in the repository, and there are at most 10 of a kind."""
    *lines, last = rendered(found, "github", VIEW).split("\n")[:-1]
    expected = told(found)
    kinds = Counter()
    for line in lines:
        match = re.fullmatch(r"::(error|warning|notice) file=([^,:]+),line=([1-9]\d*),title=([^,:]*)::(.+)", line)
        assert match, line
        assert not HIDDEN.search(line)
        assert not re.search("%(?!25|0A|0D|3A|2C)", line)
        assert not match[2].startswith(("/", "../"))
        kinds[match[1]] += 1
    assert kinds == Counter({kind: min(count, 10) for kind, count in expected.items() if count})
    assert last.startswith("opcheck: ")


def concise_is_well_formed(found):
    """Each finding is one line."""
    lines = rendered(found, "concise", VIEW).split("\n")
    expected = told(found)
    assert len(lines) == expected["error"] + expected["warning"] + 2
    assert lines[-1] == ""
    for line in lines[:-2]:
        assert re.fullmatch(r".*:\d*: .*(FAIL|INCONCLUSIVE) .*", line), line
    assert not HIDDEN.search("".join(lines))


def jsonl_is_well_formed(found):
    """Each line is strict JSON, and the seconds change none."""
    text = rendered(found, "jsonl", VIEW)
    text.encode()
    objects = [strict(line) for line in text.splitlines()]
    assert Counter(item["type"] for item in objects) == {
        key: count
        for key, count in (("audit", 1), ("op", len(found.ops)), ("case", sum(len(op.cases) for op in found.ops)))
        if count
    }
    again = rendered(replace(found, ops=tuple(replace(op, cases=tuple(replace(case, seconds=9.0) for case in op.cases))
                                              for op in found.ops)), "jsonl", VIEW)  # fmt: skip
    assert again == text
    assert all(valid_unicode(item) for item in objects)


def test_a_json_line_has_what_the_report_has():
    found = closed(passing(), failing())
    audit, *rest = (json.loads(line) for line in rendered(found, "jsonl", VIEW).splitlines())
    whole = to_json(found)
    assert audit == {"type": "audit", **{key: value for key, value in whole.items() if key != "ops"}}
    cases = [item for item in rest if item["type"] == "case"]
    assert [item["findings"] for item in cases] == [case["findings"] for op in whole["ops"] for case in op["cases"]]
    assert [item["op"] for item in cases] == ["ops::rms_norm"] * 2 + ["ops::softmax"] * 3


def gitlab_is_well_formed(found):
    """GitLab takes it, and no two fingerprints are equal."""
    issues = strict(rendered(found, "gitlab", VIEW))
    GITLAB.validate(issues)
    assert len(issues) == told(found).total()
    assert len({item["fingerprint"] for item in issues}) == len(issues)
    assert not HIDDEN.search("".join(item["description"] + item["location"]["path"] for item in issues))


def sarif_is_well_formed(found):
    """It is valid, rules and results agree, and no two fingerprints are equal."""
    text = rendered(found, "sarif", VIEW)
    data = strict(text)
    SARIF.validate(data)
    (run,) = data["runs"]
    rules = [item["id"] for item in run["tool"]["driver"]["rules"]]
    assert rules == sorted(set(rules))
    assert all(rules[item["ruleIndex"]] == item["ruleId"] for item in run["results"])
    assert len(run["results"]) == told(found).total()
    prints = [item["partialFingerprints"]["opcheck/v1"] for item in run["results"]]
    assert len(set(prints)) == len(prints)
    assert not re.search(r"\]\(", "".join(item["message"]["text"] for item in run["results"]))


def junit_is_well_formed(found):
    """It is XML, valid, and its counts are right."""
    text = rendered(found, "junit", VIEW)
    root = ET.fromstring(text)
    XSD.validate(root)
    for suite in root:
        tests = suite.findall("testcase")
        assert int(suite.get("tests")) == len(tests)
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(count)) == sum(test.find(tag) is not None for test in tests)
    assert sum(int(suite.get("tests")) for suite in root) == int(root.get("tests"))
    assert not HIDDEN.search(text)


def read(text):
    """The tags of a page of Markdown, its visible text, and the cells of each row of its tables."""
    tags, shown, rows = [], [], []
    for token in COMMONMARK.parse(text):
        for part in (token, *(token.children or ())):
            if part.type in ("html_block", "html_inline"):
                tags += re.findall("<[^>]*>", part.content)
            elif part.type in ("text", "code_inline", "fence"):
                shown.append(part.content)
        if token.type == "tr_open":
            rows.append(0)
        rows[-1:] = [rows[-1] + (token.type in ("td_open", "th_open"))] if rows else []
    return tags, shown, rows


def markdown_is_well_formed(found):
    """It has no markup but ours, and no row of a table has a cell too many."""
    text = rendered(found, "markdown", VIEW)
    assert len(text.encode()) <= 65_536
    assert not HIDDEN.search(text)
    tags, _, rows = read(text)
    assert set(tags) <= TAGS
    assert Counter(tags)["<details>"] == Counter(tags)["</details>"]
    assert set(rows) <= {4, 7}
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", text)
    for line in outside.splitlines():
        if line.startswith("|"):
            assert line.count("|") in (5, 8), line
        assert not re.search(r"@|https?://", line)


def json_is_well_formed(found):
    """It is strict JSON of valid Unicode."""
    text = rendered(found, "json", VIEW)
    assert valid_unicode(strict(text))


@settings(deadline=None, max_examples=60, derandomize=True)
@given(hostile.reports)
def test_every_format_is_well_formed_whatever_the_words(found):
    github_is_well_formed(found)
    concise_is_well_formed(found)
    json_is_well_formed(found)
    jsonl_is_well_formed(found)
    gitlab_is_well_formed(found)
    sarif_is_well_formed(found)
    junit_is_well_formed(found)
    markdown_is_well_formed(found)


@pytest.mark.parametrize("name", [name for name in ASKED if name not in ("json", "jsonl", "table")])
def test_a_million_letters_are_cut(name):
    text = rendered(hostile.enormous("x|`<\n\ud800\U0001f600\x00%"), name, VIEW)
    assert len(text.encode()) <= (65_536 if name == "markdown" else 1 << 20)
    assert len(text) > 100


def test_many_failures_stay_within_what_github_takes():
    found = tuple(finding(f"grad x{at}", FAIL, detail="far off") for at in range(6_000))
    wide = closed(replace(passing(), cases=(case("ops::rms_norm", FAIL, findings=found),)))
    (run,) = json.loads(rendered(wide, "sarif", VIEW))["runs"]
    assert len(run["results"]) == 5_000
    (left,) = run["invocations"][0]["toolExecutionNotifications"]
    assert left["message"]["text"].startswith("1000 more results are left out")
    *annotations, last = rendered(wide, "github", VIEW).splitlines()
    assert len(annotations) == 10
    assert last == "opcheck: 1 op, 1 case: 1 PASS; may not merge (exit 1); 5990 more errors"


def test_many_ops_stay_within_a_comment_and_end_in_a_whole_row():
    ops = tuple(replace(failing(), op=f"ops::{'softmax' * 20}{at}") for at in range(900))
    text = rendered(closed(*ops), "markdown", VIEW)
    assert len(text.encode()) <= 65_536
    assert text.endswith("\nThe rest is left out here; the formats table and json have it.\n")
    assert set(read(text)[2]) <= {4, 7}
    larger = page(closed(*ops), VIEW, 1 << 20)
    assert 65_536 < len(larger.encode()) <= 1 << 20


@pytest.mark.parametrize("most", [0, 10, 70, 200, 1_000, 3_000])
def test_a_page_ends_where_there_is_no_room(most):
    text = page(closed(failing(), passing()), VIEW, most)
    assert len(text.encode()) <= max(most, 64)
    assert Counter(read(text)[0])["<details>"] == Counter(read(text)[0])["</details>"]


def test_a_fingerprint_is_the_same_while_lines_and_figures_change():
    moved = replace(failing(), place="ops/softmax/kernel.py:90", cases=tuple(
        replace(item, findings=tuple(replace(part, detail="measured 1") for part in item.findings))
        for item in failing().cases
    ))  # fmt: skip
    for name in ("gitlab", "sarif"):
        before, after = (rendered(closed(op), name, VIEW) for op in (failing(), moved))
        pattern = '"(?:fingerprint|opcheck/v1|ruleId)": "[^"]*"'
        assert re.findall(pattern, before) == re.findall(pattern, after) != []
        assert before != after


def test_what_a_fingerprint_tells_apart():
    def prints(*found):
        wrong = replace(passing(), cases=(case("ops::rms_norm", FAIL, findings=found),))
        return [item["fingerprint"] for item in json.loads(rendered(closed(wrong), "gitlab", VIEW))]

    (first,) = prints(finding("out", FAIL))
    for other in (finding("grad x", FAIL), finding("out", FAIL, check="ulp"), finding("out", INCONCLUSIVE)):
        assert prints(other) != [first]
    assert prints(finding("out", FAIL, place="a.py:1"), finding("out", FAIL, place="a.py:2")) == [first, f"{first}-2"]


def test_severities():
    ops = (failing(), replace(passing(), op="ops::other", problems=("no case judges grad x",)))
    found = closed(*ops, problems=("a waiver has expired",))
    issues = json.loads(rendered(found, "gitlab", VIEW))
    assert [(item["check_name"], item["severity"]) for item in issues] == [
        ("opcheck/gate", "blocker"), ("opcheck/numerics", "critical"), ("opcheck/numerics", "major"),
        ("opcheck/unproven", "major"), ("opcheck/determinism", "info"),
    ]  # fmt: skip
    (run,) = json.loads(rendered(found, "sarif", VIEW))["runs"]
    assert [item["level"] for item in run["results"]] == ["error", "error", "warning", "warning", "note"]
    assert run["results"][-1]["suppressions"] == [{"kind": "external", "justification": "atomics (until 2027-03-31)"}]
    root = ET.fromstring(rendered(found, "junit", VIEW))
    states = {(test.get("classname"), test.get("name")): [part.tag for part in test] for test in root.iter("testcase")}
    assert states == {
        ("ops::softmax", "numerics"): ["failure"], ("ops::softmax", "determinism"): ["skipped"],
        ("ops::other", "numerics"): [], ("ops::other", "unproven"): ["error"], ("registry", "gate"): ["failure"],
    }  # fmt: skip


def test_a_check_that_no_case_allows_is_skipped_in_junit():
    idle = replace(passing().cases[0], skipped={"stress": "at the level full", "numerics": "elsewhere"})
    root = ET.fromstring(rendered(report(replace(passing(), cases=(idle,))), "junit", VIEW))
    assert {test.get("name"): [part.get("message") for part in test] for test in root.iter("testcase")} == {
        "numerics": [], "stress": ["at the level full"],
    }  # fmt: skip


def test_concise_letter_by_letter():
    found = closed(passing(), failing(), problems=("ops::new is registered\nand not declared",))
    small, large = (f"ops::softmax[float16;rows={rows},cols=129;{{}};;;;0]@cpu" for rows in (3, 5))
    small = small.format("normal")
    gate = "registry.toml:1: registry gate FAIL ops::new is registered and not declared\n"
    wrong = (
        "ops/softmax/kernel.py:9: ops::softmax numerics FAIL grad x: measured 9.3e-04, allowed 4.3e-04 "
        "(2 x 2.0e-04 + 3.1e-05), worst at [2, 128]  "
    )
    unsure = (
        "ops/softmax/kernel.py:9: ops::softmax numerics INCONCLUSIVE out: the reference itself is 20% of the scale "
        f"from golden  [{large.format('extreme_logits')}]\n"
    )
    end = "2 ops, 5 cases: 1 PASS, 1 FAIL; may not merge (exit 1)\n"
    assert rendered(found, "concise", View()) == f"{gate}{wrong}[{small} and 1 more case]\n{unsure}{end}"
    assert rendered(found, "concise", View(verbosity=-1)) == f"{gate}{wrong}[{small} and 1 more case]\n{unsure}"
    every = f"{gate}{wrong}[{large.format('normal')}]\n{wrong}[{small}]\n{unsure}{end}"
    assert rendered(found, "concise", View(verbosity=1)) == every
    assert rendered(report(passing()), "concise", View()) == "1 op, 2 cases: 1 PASS; may merge (exit 0)\n"


def test_github_letter_by_letter():
    at = finding("out", FAIL, check="memory", detail="100% wrong, at a:b", place="ops/softmax/kernel.py:159")
    op = replace(passing(), op="ops::x", cases=(case("ops::x", FAIL, size="n=3", findings=(at,)),))
    assert rendered(closed(op), "github", View(folder="kernels")) == (
        "::error file=kernels/ops/softmax/kernel.py,line=159,title=FAIL memory ops%3A%3Ax out::"
        "The target is at most 2x as far from golden as the reference is, plus the rounding floor.%0A"
        "100%25 wrong, at a:b%0Ain ops::x[float16;n=3;normal;;;;0]@cpu%0A"
        "again: python -m opcheck audit --backend cpu --case 'ops::x[float16;n=3;normal;;;;0]@cpu'\n"
        "opcheck: 1 op, 1 case: 1 PASS; may not merge (exit 1)\n"
    )


def test_markdown_tells_the_failures_and_hides_the_rest():
    text = rendered(closed(passing(), failing(), problems=("a waiver has expired",)), "markdown", VIEW)
    tags, shown, rows = read(text)
    assert text.startswith("<!-- opcheck -->\n### opcheck: may not merge\n")
    assert rows == [4, 4, 7, 7, 7, 4, 4]
    assert "a waiver has expired" in shown
    (failure,) = (item for item in shown if item.startswith("FAIL numerics"))
    assert "looks like: the tail of the last tile (cols % 128) is not masked" in failure
    assert Counter(tags)["<details>"] == 2
    assert "may merge" in rendered(report(passing()), "markdown", VIEW).splitlines()[1]


@pytest.mark.parametrize("verdict", Verdict)
def test_nothing_audited_is_well_formed_everywhere(verdict):
    for name in names():
        assert rendered(report(verdict=verdict, exit_status=5), name, VIEW)
