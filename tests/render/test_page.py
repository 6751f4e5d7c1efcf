"""The report as a page: what stands on it, and that no word of a report gets out of its place."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from opcheck.core.kernel_coverage import Gap, KernelCoverage, MaskSeen
from opcheck.core.report import CaseReport
from opcheck.core.verdict import Verdict
from opcheck.render.page import render
from opcheck.render.page.matrix import checks_of, marks
from opcheck.render.plain import clean
from tests.core.reports import FAIL, PASS, case, finding, passing, report, row
from tests.render.hostile_words import HOSTILE
from tests.render.pictures import depicted, large, mixed

pytest.importorskip("jinja2", reason="the extra opcheck[report] is not installed")
pytest.importorskip("matplotlib", reason="the extra opcheck[report] is not installed")

VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.text, self.attributes = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *item) for item in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *item) for item in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)


def parsed(text):
    found = Page(text)
    assert found.open == []
    return found


def said(found):
    return " ".join(" ".join(found.text).split())


@pytest.fixture(scope="module")
def page():
    return render(mixed(), registry="tests/broken/registry.toml")


def test_everything_that_a_reader_needs_is_said(page):
    text = said(parsed(page))
    for words in (
        "May not merge", "2 ops, 6 cases: 1 PASS, 1 FAIL; may not merge (exit 1)", "exp(x) / sum(exp(x))",
        "ops/softmax/kernel.py:9", "measured 9.3e-04, allowed 4.3e-04 (2 x 2.0e-04 + 3.1e-05), worst at [2, 128]",
        "looks like the tail of the last tile (cols % 128) is not masked", "and in 1 more case", "limit 6",
        "Tensor Ref/golden Condition Target error Threshold Gate valid Verdict", "dims rows, cols",
        "python -m opcheck audit --registry tests/broken/registry.toml --backend cpu --case "
        "'ops::softmax[float16;rows=3,cols=129;normal;;;;0]@cpu' copy",
        "python -m opcheck repro --registry 'tests/broken/registry.toml' "
        "'ops::softmax[float16;rows=3,cols=129;normal;;;;0]@cpu' copy",
        "shape rows=4096, cols=4096: too large for the interpreter; audit it on a GPU", "stress not covered",
        "3 of 14 cells beyond 1", "exponents 0.79 (target) and 0.50 (reference)", "torch 2.13.0",
    ):  # fmt: skip
        assert words in text, words


def test_each_picture_is_drawn_once(page):
    found = parsed(page)
    assert found.tags.count("figure") == 4
    assert found.tags.count("svg") == 4


def test_nothing_is_fetched(page):
    assert "http:" not in page
    assert "https:" not in page
    for tag, name, value in parsed(page).attributes:
        if name in ("src", "href", "xlink:href", "action", "srcset"):
            assert value.startswith(("#", "data:")), (tag, name, value)
    assert "url(" not in re.sub(r"url\(#\w+\)", "", page)


def test_the_page_runs_its_own_script_and_no_other(page):
    (policy,) = (value for tag, name, value in parsed(page).attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'")
    assert "unsafe-inline" not in policy.partition("script-src")[2]
    assert not [name for _, name, _ in parsed(page).attributes if name.startswith("on")]


def test_a_verdict_is_said_in_words_beside_its_mark_and_colour():
    found = said(parsed(render(report(passing()))))
    assert "✓ PASS" in found
    cells = {name: (verdict, words) for name, verdict, words in marks(depicted(), ("determinism", "numerics", "ulp"))}
    assert cells["numerics"] == (FAIL, "FAIL")
    assert cells["determinism"] == (Verdict.PASS_WITH_LIMITATIONS, "PASS WITH LIMITATIONS")  # waived
    assert cells["ulp"] == (None, "not run")
    skipping = replace(passing(), cases=(case("ops::x", PASS, skipped={"ulp": "of another kind"}),))
    assert marks(skipping, ("ulp",)) == [("ulp", None, "not applicable: of another kind")]
    assert checks_of([passing(), depicted()]) == ("determinism", "numerics")


def test_kernels_are_shown_where_they_were_recorded():
    mask = MaskSeen(line=14, access="load", mask="at < n", seen=("all on",), block=True)
    reached = KernelCoverage(
        kernel="ops.rms_norm.kernel._forward", place="ops/rms_norm/kernel.py:12", ops=("ops::rms_norm",), lines=9,
        reached=7, gaps=(Gap(first=20, last=21),), masks=(mask,),
    )  # fmt: skip
    unlaunched = KernelCoverage(kernel="ops.spare", place="ops/spare.py:3", ops=(), lines=4, reached=0)
    text = said(parsed(render(report(passing(), kernels=(reached, unlaunched)))))
    assert "_forward ops/rms_norm/kernel.py:12 7 of 9 20-21 0 of 1 14" in text
    assert "Kernels that no case launches ops.spare ops/spare.py:3" in text
    assert "Kernels" not in said(parsed(render(report(passing()))))


def test_nothing_audited_is_a_page_too():
    text = said(parsed(render(report(verdict=Verdict.INCONCLUSIVE, exit_status=5, problems=("a stale waiver",)))))
    assert "0 ops, 0 cases: nothing audited; may not merge (exit 5)" in text
    assert "a stale waiver" in text


def hostile(word):
    wrong = finding(word, FAIL, check=word, detail=word, looks_like=word)
    odd = CaseReport(id=f"{word}[float16;n=3;normal;;;;0]@cpu", verdict=FAIL, tensors=(row(word, dtype=word),),
                     findings=(wrong,), skipped={word: word})  # fmt: skip
    op = replace(passing(), op=word, formula=word, kind=word, place=word, limitations=(word,), not_covered=(word,),
                 problems=(word,), backend=word, contract={word: word}, cases=(odd,))  # fmt: skip
    kernel = KernelCoverage(kernel=word, place=word, ops=(word,), lines=1, reached=0)
    return replace(report(op, kernels=(kernel,)), problems=(word,), environment={word: word}, policy_digest=word)


@pytest.fixture(scope="module")
def plain_tags():
    return parsed(render(hostile("word"))).tags


@pytest.mark.parametrize("word", HOSTILE)
def test_no_word_gets_out_of_its_place(word, plain_tags):
    text = render(hostile(word))
    text.encode()
    found = parsed(text)
    # An id that cannot be read has no command to run it again; no text brings a tag of its own.
    assert set(found.tags) <= set(plain_tags)
    assert [found.tags.count(tag) for tag in ("script", "style", "img", "title")] == [1, 1, 0, 1]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\ufffe]", text)
    if len(word) < 100:
        assert clean(word).strip() in " ".join(found.text)
    assert not [value for _, name, value in found.attributes if name.startswith("on")]


def test_a_million_letters_are_cut():
    text = render(hostile("<&\x07" * 333_333))
    assert len(text) < 1_000_000
    assert "&lt;&amp;\\x07" in text


@pytest.mark.parametrize(("text", "shown"), [
    ("a\tb\nc", "a\tb\nc"), ("\x1b[0m", "\\x1b[0m"), ("\u202e", "\\u202e"), ("\ud800", "\\ud800"), ("é✗", "é✗"),
])  # fmt: skip
def test_invisible_characters_are_written_out(text, shown):
    assert clean(text) == shown


def test_a_registry_of_25_ops_and_100_cases_each_is_a_small_page():
    text = render(large())
    assert text.count('class="op"') == 25
    assert text.count("<li><i") == 2500
    assert len(text.encode()) < 1_500_000
