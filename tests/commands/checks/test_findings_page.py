"""Every example of docs/findings: the bad one has the finding, the good one has none."""

import re
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.kinds import RULES, find_rule, rule_of
from cntkpy.commands.checks.findings import selects

DOCS = Path(__file__).resolve().parents[3] / "docs"
SECTION = re.compile(r"^## (CK\d+): [^\n]*\n(.*?)(?=^<a id=|\Z)", re.MULTILINE | re.DOTALL)
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((DOCS / "findings").glob("*.md"))}
PARTS = {code: part for page in PAGES.values() for code, part in SECTION.findall(page)}
BLOCK = re.compile(r'^```ini title="(\w+\.cntk)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
WITHOUT_EXAMPLE = {
    "CK002",
    "CK018",
    "CK045",
    "CK070",
    "CK071",
    "CK072",
    "CK073",
    "CK074",
    "CK075",
    "CK076",
    "CK080",
    "CK081",
    "CK082",
    "CK099",
}
"""A file that is not text cannot be shown; the others are in words, runs (docs/errors.md), plug-ins or projects."""


def test_the_page_has_every_rule() -> None:
    """Its section is on the page of its group, and the first page has its title; both have its anchor."""
    assert sorted(PARTS) == sorted(rule.code for rule in RULES)
    index = (DOCS / "findings.md").read_text(encoding="utf-8")
    for rule in RULES:
        anchor = rule.code.lower()
        assert f'<a id="{anchor}"></a>\n\n## {rule.code}: {rule.title}\n' in PAGES[rule.page]
        assert f'<a id="{anchor}"></a>[{rule.code}](findings/{rule.page}.md#{anchor}) | {rule.title} |' in index
        assert rule.link.endswith(f"/docs/findings/{rule.page}.md#{anchor}")
        assert f"**{rule.severity}: {rule.title}.**" in PARTS[rule.code]
        assert find_rule(rule.code.lower()) is rule
        assert all(f"`{kind}`" in PARTS[rule.code] for kind in rule.kinds)
    assert {code for code, part in PARTS.items() if not BLOCK.search(part)} == WITHOUT_EXAMPLE


def test_codes_and_kinds_are_unique() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
    kinds = [kind for rule in RULES for kind in rule.kinds]
    assert len(set(kinds)) == len(kinds)
    assert rule_of("package.SomethingNew").code == "CK099"
    assert selects("CK01,ck03", "CK034")
    assert not selects("CK01", "CK020")


@pytest.mark.parametrize("code", [code for code in PARTS if code not in WITHOUT_EXAMPLE])
def test_example(code: str, cntkpy) -> None:
    files = dict(BLOCK.findall(PARTS[code]))
    rule = find_rule(code)
    assert rule is not None
    files["train.ctf"] = "|features 1 2 |labels 0 0 1\n" * 3
    words = ["--data"] if code == "CK061" else []
    bad = cntkpy("check", "bad.cntk", *words, files=files)
    lines = [line for line in bad.out.splitlines() if line.endswith(f"[{code}]")]
    assert lines, bad.out
    assert all(re.match(rf"\w+\.cntk:\d+:\d+: {rule.severity}: ", line) for line in lines), bad.out
    assert bad.code >= {"hint": 0, "warning": 1, "error": 2}[rule.severity]
    good = cntkpy("check", "good.cntk", *words)
    assert (good.code, good.out) == (0, "no problems in 1 configuration\n")


def test_a_file_that_is_not_text(cntkpy) -> None:
    got = cntkpy("check", "bad.cntk", files={"bad.cntk": "command = ()\na = b\rc\n"})
    assert "[CK002]" in got.out
