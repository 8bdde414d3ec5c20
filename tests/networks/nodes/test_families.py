"""All that is known of a kind of node stands in the folder of its family."""

import ast
import importlib
from pathlib import Path

import pytest

from cntkpy.networks import nodes

ROOT = Path(__file__).parents[3]
NODES = ROOT / "cntkpy/networks/nodes"
FAMILY_OF = {kind.name: kind.forward.__module__.split(".")[3] for kind in nodes.kinds() if kind.forward is not None}
"""Folder of the forward function of a kind."""

TABLES = (
    ("onnx_writing", "RULES"),
    ("source_writing", "RULES"),
    ("source_writing", "REFUSED"),
    ("source_writing", "NUMBERS"),
    ("source_layers", "LAYERS"),
    ("cntk_file", "RULES"),
    ("cntk_file", "BODIES"),
)


def tables_of_kinds(tree: ast.Module) -> list[int]:
    """Return the lines of dictionaries that have an entry for each of several kinds of nodes."""
    names = {kind.name for kind in nodes.kinds()}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        and sum(isinstance(key, ast.Constant) and key.value in names for key in node.keys) >= 4
    ]


@pytest.mark.parametrize(("part", "table"), TABLES)
def test_a_rule_stands_in_the_folder_of_its_family(part, table):
    misplaced = {
        name: family
        for family in nodes.FAMILIES
        if (NODES / family / f"{part}.py").exists()
        for name in getattr(importlib.import_module(f"cntkpy.networks.nodes.{family}.{part}"), table, {})
        if FAMILY_OF.get(name, family) != family
    }
    assert not misplaced


def test_every_folder_is_a_family_or_support():
    folders = {path.parent.name for path in NODES.glob("*/*.py")}
    assert folders == {*nodes.FAMILIES, "onnx_support", "file_support", "source_support"}


def test_tables_of_kinds_are_found():
    text = "A = {'Plus': 1, 'Minus': 2, 'Times': 3, 'Log': 4}\nB = {'Plus': 1}"
    assert tables_of_kinds(ast.parse(text)) == [1]


@pytest.mark.parametrize(
    "folder", ["builders/brainscript", "builders/ndl", "compile", "files", "graph", "mel", "onnx", "source"]
)
def test_no_table_of_kinds_stands_outside_of_the_families(folder):
    """A new node needs no entry there. `constants.py` computes operators of ONNX; some share names."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "cntkpy/networks" / folder).rglob("*.py"))
        if path.name != "constants.py"
        for line in tables_of_kinds(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not wrong


def test_families_with_the_same_entry_are_refused(monkeypatch):
    rules = importlib.import_module("cntkpy.networks.nodes.linear.onnx_writing").RULES
    monkeypatch.setitem(rules, "Log", rules["Times"])
    with pytest.raises(AssertionError, match=r"other families have entries for \['Log'\]"):
        nodes.tables("onnx_writing")
