"""Pages made from the code are as the code has them."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_the_registry_is_up_to_date():
    page = runpy.run_path(str(ROOT / "docs" / "generate.py"))["page"]()
    assert (ROOT / "docs" / "registry.md").read_text() == page, "run: python docs/generate.py"
