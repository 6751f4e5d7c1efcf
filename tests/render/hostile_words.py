"""Words that an enemy, or an accident, may put into a name or a message."""

HOSTILE = (
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</style></script><svg onload=alert(1)>", "&amp;",
    "{{ 7 * 7 }}", "{% raw %}", "$x$ $\\frac{", "\x00\x07\x1b[31mred", "\u202egnp.exe", "\ud800", "\ufffe", "\u2028",
    "../../etc/passwd", "-->", "]]>", "javascript:alert(1)", "https://example.org/x.js", "日本語 ✗ 🙂", "", " ",
    "%s %d", "x" * 3000,
)  # fmt: skip
