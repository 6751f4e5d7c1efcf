"""Reports whose every word comes from an enemy: markup, control characters, half characters, a million letters."""

from hypothesis import strategies as st

from opcheck.core.finding import Finding
from opcheck.core.report import AuditReport, CaseReport, OpReport
from opcheck.core.verdict import Verdict
from tests.core.reports import row

NASTY = (
    "\r\n::error::injected", "%0A::warning::x", "]]>", "<![CDATA[", "<script>alert(1)</script>", "</details>", "-->",
    "```", "````\n# title", "a|b", "\\|", "@team", "#1", "https://example.org", "[x](1)", "{0}", "\x00", "\x1b[31m",
    "\x85", "\u2028", "\u202eabc", "\u200b", "\ufeff", "\uffff", "\ud800", "\udfff\ud800", "\U0001f600", "&amp;",
    "'\"", "$x$", ":tada:", "\tx", "- [ ] x", "1. x", "ops/a b/k.py", "../../etc/passwd", "/", "é" * 50,
)  # fmt: skip
words = st.text(st.characters(), max_size=6) | st.lists(st.sampled_from(NASTY), max_size=3).map("".join)
places = words.map(lambda text: f"{text}:7") | st.sampled_from(
    ["k.py:3", "/r/ops/k.py:9", "/else/k.py:1", "k.py:0", ""]
)
checks = st.sampled_from(["numerics", "memory", "library", "opcheck"]) | words.filter(str.strip)  # never blank
ids = (
    words
    | words.map(lambda text: f"ops::x[float16;n=3;normal;;;;0]@cpu{text}")
    | st.just("ops::x[float16;n=3;normal;;;;0]@cpu")
)
findings = st.builds(
    Finding, check=checks, tensor=words, verdict=st.sampled_from(Verdict), law=words, detail=words, looks_like=words,
    waived=st.just("") | words, place=places,
)  # fmt: skip
rows = words.map(lambda name: row(name, dtype=name))
cases = st.builds(
    CaseReport, id=ids, verdict=st.sampled_from(Verdict), tensors=st.lists(rows, max_size=2).map(tuple),
    findings=st.lists(findings, max_size=4).map(tuple), skipped=st.dictionaries(words, words, max_size=2),
)  # fmt: skip
ops = st.builds(
    OpReport, op=words, verdict=st.sampled_from(Verdict), backend=words, place=places, formula=words, kind=words,
    cases=st.lists(cases, max_size=2).map(tuple), problems=st.lists(words, max_size=2).map(tuple),
)  # fmt: skip
reports = st.builds(
    AuditReport, ops=st.lists(ops, max_size=3).map(tuple), verdict=st.sampled_from(Verdict),
    exit_status=st.integers(0, 5), problems=st.lists(words, max_size=2).map(tuple), complete=st.booleans(),
)  # fmt: skip


def enormous(letters: str, ops: int = 1) -> AuditReport:
    """A report in which every text is a million characters long."""
    text = (letters * (1_000_000 // len(letters) + 1))[:1_000_000]
    found = tuple(
        Finding(check=f"{at}{text}", tensor=text, verdict=Verdict.FAIL, law=text, detail=text, looks_like=text,
                place=f"{text}:1", waived=text if at == 3 else "")
        for at in range(4)
    )  # fmt: skip
    case = CaseReport(id=text, verdict=Verdict.FAIL, tensors=(row(text, Verdict.FAIL, dtype=text),), findings=found)
    op = OpReport(op=text, verdict=Verdict.FAIL, backend=text, cases=(case,), place=f"{text}:1", problems=(text,))
    return AuditReport(ops=(op,) * ops, verdict=Verdict.FAIL, exit_status=1, problems=(text,))
