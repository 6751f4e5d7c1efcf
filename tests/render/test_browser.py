"""The page in a browser, wide and on a phone; skipped where there is no Chromium."""

import shutil

import pytest

from opcheck.render.page import render
from tests.render.pictures import mixed

pytest.importorskip("jinja2", reason="the extra opcheck[report] is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
WIDTHS = (1280, 390)


def chromium():
    """The path of a browser, or nothing."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


pytestmark = pytest.mark.skipif(chromium() is None, reason=f"none of {', '.join(NAMES)} is on PATH")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=chromium(), args=list(QUIET))
        yield started
        started.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    found = tmp_path_factory.mktemp("page") / "report.html"
    found.write_text(render(mixed()), encoding="utf-8")
    return found


@pytest.fixture
def opened(browser, file):
    """Open the page at a width; in the end, nothing may have been asked of anybody, and nothing complained of."""
    pages = []

    def at(width, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
        asked, complaints = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        pages.append((page, asked, complaints))
        page.goto(file.as_uri())
        return page

    yield at
    for page, asked, complaints in pages:
        page.close()
        assert complaints == []
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
        assert sum(url.startswith("file:") for url in asked) == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_screen(opened, width):
    page = opened(width)
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.scrollWidth") <= width
    assert page.locator("figure svg").count() == 4
    for picture in page.locator("figure svg").all():
        box = picture.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert min(box["width"], box["height"]) > 60


@pytest.mark.parametrize("width", WIDTHS)
def test_the_header_stays(opened, width):
    page = opened(width)
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert page.locator("header.bar").bounding_box()["y"] == 0


def shown(page):
    return [node.locator(".title").inner_text() for node in page.locator("details.op").all() if node.is_visible()]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_filter(opened, width):
    page = opened(width)
    assert shown(page) == ["ops::rms_norm", "ops::softmax"]
    page.fill("#filter", "SOFT")
    assert shown(page) == ["ops::softmax"]
    assert page.locator(".matrix tbody tr:visible").count() == 1
    assert page.inner_text("#found") == "1 of 2 ops"
    page.fill("#filter", "rms cols=1;")  # only one case has it
    assert shown(page) == ["ops::rms_norm"]
    assert page.locator(".cases li:visible").all_inner_texts() == ["✓\n[float16;rows=1,cols=1;normal;;;;0]@cpu"]
    page.fill("#filter", "nothing at all")
    assert shown(page) == []
    page.fill("#filter", "")
    assert shown(page) == ["ops::rms_norm", "ops::softmax"]
    assert page.inner_text("#found") == ""


def test_one_verdict_at_a_time(opened):
    page = opened(1280)
    page.click("button[data-only=fail]")
    assert shown(page) == ["ops::softmax"]
    assert page.get_attribute("button[data-only=fail]", "aria-pressed") == "true"
    page.click("button[data-only=fail]")
    assert len(shown(page)) == 2


def colours(page):
    return page.evaluate("(({ backgroundColor, color }) => [backgroundColor, color])(getComputedStyle(document.body))")


def test_light_and_dark(opened):
    light, dark = opened(1280), opened(1280, "dark")
    assert colours(light) != colours(dark)
    assert contrast(*colours(light)) > 7
    assert contrast(*colours(dark)) > 7
    before = colours(light)
    light.click("#theme")
    assert colours(light) == colours(dark)
    light.click("#theme")
    assert colours(light) == before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_badge_can_be_read(opened, scheme):
    """WCAG 2.2, success criterion 1.4.3: a contrast of 4.5."""
    page = opened(1280, scheme)
    pairs = page.evaluate(
        "[...document.querySelectorAll('.badge, .chips button, .matrix td:not(.none)')].map(getComputedStyle)"
        ".map(({ backgroundColor, color }) => [backgroundColor, color])"
    )
    assert len(pairs) > 8
    assert min(contrast(*pair) for pair in pairs) >= 4.5


def test_a_mark_of_the_overview_leads_to_its_op(opened):
    page = opened(390)
    page.click(".matrix tbody tr:first-child a")
    page.wait_for_function("document.getElementById('op-1').open")
    assert page.locator("#op-1").bounding_box()["y"] < 844


def test_the_command_is_copied(opened):
    page = opened(1280)
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.locator("button.copy").first.click()
    page.wait_for_function("window.copied")
    assert page.evaluate("window.copied").startswith("python -m opcheck audit --backend cpu --case 'ops::softmax[")
    assert page.locator("button.copy").first.inner_text() == "copied"


def contrast(*colours):
    """The contrast of two colours (WCAG 2.2)."""
    high, low = sorted(map(luminance, colours), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour):
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
