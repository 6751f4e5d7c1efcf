"""A variant with some values changed and others left out."""

from opcheck.core.variants import CONFIG, changed_variant, config_of, variant_text


def test_a_changed_variant_keeps_what_is_reserved():
    text = variant_text({"p": 0.5, "mode": "a;b", CONFIG: 1})
    assert changed_variant(text, {"p": 0.25}) == variant_text({"p": 0.25, "mode": "a;b", CONFIG: 1})
    assert changed_variant(text, {"seed": 3}, without={"mode"}) == variant_text({"p": 0.5, CONFIG: 1, "seed": 3})
    assert config_of(changed_variant(text, without={"p", "mode"})) == 1
    assert changed_variant("") == ""
