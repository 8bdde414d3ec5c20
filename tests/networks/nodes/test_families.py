"""All that is known of a kind of node stands in the folder of its family."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.language.library import library_members
from cntkpy.networks.builders.brainscript.language.source import joined_text
from cntkpy.networks.builders.brainscript.loading import operation_of
from cntkpy.networks.builders.brainscript.operations import OPERATIONS, Operation
from cntkpy.networks.builders.brainscript.program import LIBRARY
from cntkpy.networks.builders.python.functions import calls

ROOT = Path(__file__).parents[3]
NODES = ROOT / "cntkpy/networks/nodes"
FAMILY_OF = {
    kind.name: module.parent.name
    for module in NODES.glob("*/*.py")
    for kind in getattr(
        importlib.import_module(f"cntkpy.networks.nodes.{module.parent.name}.{module.stem}"), "KINDS", ()
    )
}
"""Folder of the declaration of a kind."""

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


@pytest.mark.parametrize("file", ["library.bs", "python.bs"])
def test_a_function_stands_in_the_folder_of_the_nodes_that_it_makes(file) -> None:
    misplaced = [
        f"{path.parent.name}: {name}"
        for path in nodes.files(file)
        for name in re.findall(r"operation = '(\w+)'", path.read_text("utf-8"))
        if FAMILY_OF[OPERATIONS[name].kind_name] != path.parent.name
    ]
    assert not misplaced


@pytest.mark.parametrize("path", [LIBRARY, calls.LIBRARY], ids=["BrainScript", "Python"])
def test_no_node_is_made_outside_of_the_families(path) -> None:
    """The namespaces have their own forms of some functions."""
    members = library_members(joined_text([path], "library")).members
    makes = [name for name, member in members.items() if "operation = '" in member.value.place.string]
    assert makes == (["BS", "CNTK2"] if path is LIBRARY else [])


@pytest.mark.parametrize("kind", [*nodes.kinds(), *nodes.declared("host.kinds")], ids=lambda kind: kind.name)
def test_a_stored_node_has_the_operation_that_makes_its_kind(kind):
    declared = [operation for operation in OPERATIONS.values() if operation.kind_name == kind.name]
    other = Operation(kind.printed or kind.name, kind.name)
    assert operation_of(kind.name, kind.printed) == next(iter(declared), other)


def test_a_check_imports_the_kinds_that_its_networks_use():
    program = (
        "import sys; from cntkpy.commands.cli import main; main(['check', 'sample_configs/fine_tuning.cntk']);"
        "print('cntkpy.networks.nodes.images.geometry' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "False"
