"""JUnit's XML, which nearly every CI system shows: a suite is an op, a test is one of its checks.

There is no official schema; this keeps to what the Jenkins xUnit plug-in's `junit-10.xsd` allows.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

from opcheck.core.report import AuditReport, OpReport
from opcheck.core.verdict import Verdict
from opcheck.render.plain import clean, line
from opcheck.render.remarks import GATE, Remark, counted, remarks
from opcheck.render.view import View

LONGEST_NAME = 500
MOST = 20  # findings told of one test


def render(report: AuditReport, view: View) -> str:
    """Return the report: a failure is a FAIL, an error a doubt, skipped what is waived or what no case allows."""
    found = remarks(report, view)
    root = ET.Element("testsuites", name="opcheck")
    for op in report.ops:
        root.append(_suite(op, [item for item in found if item.op == op.op and item.check != GATE]))
    if closed := [item for item in found if item.check == GATE]:
        root.append(_counted(ET.Element("testsuite", name="registry"), [_case("registry", GATE, closed)], 0.0))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(op: OpReport, found: list[Remark]) -> ET.Element:
    suite = ET.Element("testsuite", name=line(op.op, LONGEST_NAME))
    properties = ET.SubElement(suite, "properties")
    for name, value in (("verdict", str(op.verdict)), ("backend", op.backend), ("place", op.place)):
        ET.SubElement(properties, "property", name=name, value=line(value))
    reasons = dict(_reasons(op))
    ran = {item.check for case in op.cases for item in case.findings}
    names = dict.fromkeys([*sorted(ran | set(reasons)), *(item.check for item in found)])
    tests = [
        _case(op.op, name, [item for item in found if item.check == name], "" if name in ran else reasons.get(name, ""))
        for name in names
    ]
    return _counted(suite, tests, sum(case.seconds for case in op.cases))


def _reasons(op: OpReport) -> Iterator[tuple[str, str]]:
    """Yield of each check a reason for which it did not apply."""
    for case in op.cases:
        yield from case.skipped.items()


def _case(op: str, check: str, found: list[Remark], skipped: str = "") -> ET.Element:
    test = ET.Element("testcase", classname=line(op, LONGEST_NAME), name=line(check, LONGEST_NAME))
    open_ = [item for item in found if not item.waived]
    failed = any(item.verdict is Verdict.FAIL for item in open_)
    if open_:
        part = ET.SubElement(test, "failure" if failed else "error", type=str(open_[0].verdict))
        part.set("message", line(f"{open_[0].tensor}: {open_[0].detail}".removeprefix(": "), LONGEST_NAME))
        left = [f"and {counted(len(open_) - MOST, 'more finding')}"] if len(open_) > MOST else []
        part.text = "\n\n".join([clean(f"{item.title}\n{item.message}") for item in open_[:MOST]] + left)
    elif found:
        ET.SubElement(test, "skipped", type="waived", message=line(f"waived: {found[0].waived}", LONGEST_NAME))
    elif skipped:
        ET.SubElement(test, "skipped", type="not applicable", message=line(skipped, LONGEST_NAME))
    return test


def _counted(suite: ET.Element, tests: list[ET.Element], seconds: float) -> ET.Element:
    suite.extend(tests)
    parts = [part.tag for test in tests for part in test]
    counts = {"tests": len(tests), "failures": parts.count("failure"), "errors": parts.count("error")}
    for name, count in {**counts, "skipped": parts.count("skipped")}.items():
        suite.set(name, str(count))
    suite.set("time", f"{seconds:.3f}")
    return suite
