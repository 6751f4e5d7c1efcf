"""The pages that are made from declarations are the ones in docs/."""

import importlib.util
from pathlib import Path

import pytest

from opcheck.core.families import FAMILIES
from opcheck.core.layouts import LAYOUTS

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["registry.md", "cases.md"])
def test_the_page_is_the_one_generated(name, generate):
    assert (DOCS / name).read_text() == generate.PAGES[name](), "run python docs/generate.py"


def test_every_family_and_layout_is_explained_once():
    lines = (DOCS / "cases.md").read_text().splitlines()
    for item in (*FAMILIES, *LAYOUTS):
        assert sum(line.startswith(f"| `{item.name}` | {item.bug}") for line in lines) == 1, item.name
