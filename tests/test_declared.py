"""The program reads parameters through declarations only: what its text says, and what it does while tests run."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from declared_reads import READING, ROOT, TOOLS, Watch
from syntax import imports_and_calls

from cntkpy.cntk_config import entry, parse
from cntkpy.commands.catalogue import dispatch

LOOK_UPS = {"find", "own", "definition", "section", "array", "sections", "opaque", "exists", "exists_current", "match",
            "insert", "stored"}  # fmt: skip
"""Methods of `ConfigParameters` that are given a name."""
HOLDERS = ("config", "section", "root", "reader", "writer", "sgd", "content")
"""What variables with a configuration are called here: `section("modelPath")` is a look-up as well."""


def literal_look_ups(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of every look-up whose name is in the program as text."""
    for node in imports_and_calls(text):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
            continue
        name = node.args[0].value
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name):
            continue
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        variable = method or (node.func.id if isinstance(node.func, ast.Name) else "")
        if method in LOOK_UPS or variable in HOLDERS:
            yield node.lineno, name


@pytest.mark.parametrize("package", READING)
def test_no_name_is_looked_up_without_its_declaration(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: '{name}' is read without a declaration"
        for path in sorted((ROOT / package).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in TOOLS
        for line, name in literal_look_ups(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "x = section.find('newName')",
        "int(config('newName'))",
        "p.config.section('newName').names()",
        "'x'; a.exists('b')",
    ],
)
def test_look_ups_in_a_text_are_found(line: str) -> None:
    assert len(list(literal_look_ups(line))) == 1


@pytest.mark.parametrize("line", ["text.find('.')", "Parameter('newName', TEXT)", "network.find(name)", "config(name)"])
def test_other_calls_are_not(line: str) -> None:
    assert not list(literal_look_ups(line))


CONFIG = "command = a\na = [ action = look ; SGD = [ maxEpochs = 1 ] ]\n"


def look(program: str, config: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a watch finds when an action runs that is this text, a part of the program."""
    names: dict[str, object] = {}
    code = compile(f"def look(section, context):\n    {program}\n", str(ROOT / "commands/injected.py"), "exec")
    exec(code, names)
    load = entry.load_object
    action = replace(dispatch.find_action("train", "a"), names=("look",), factory="injected:look")
    monkeypatch.setattr(dispatch, "ACTIONS", (*dispatch.ACTIONS, action))
    monkeypatch.setattr(entry, "load_object", lambda path: names["look"] if path == "injected:look" else load(path))
    with monkeypatch.context() as patch:
        watch = Watch()
        watch.start(patch)
        section = parse(config, "m.cntk").section("a")
        dispatch.run_action(action, section, None)  # type: ignore[arg-type]
    return watch.undeclared()


@pytest.mark.parametrize(
    ("program", "name", "path"),
    [
        ("section.find('newName')", "newName", "m.cntk:a"),
        ("section('modelPth', '')", "modelPth", "m.cntk:a"),
        ("section.exists(''.join(['new', 'Name']))", "newName", "m.cntk:a"),
        ("section.section('SGD').array('newName', '')", "newName", "m.cntk:a:SGD"),
        ("section.section('SGD').find('file')", "file", "m.cntk:a:SGD"),  # declared, but not there
    ],
)
def test_an_undeclared_read_is_caught(program: str, name: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(program, CONFIG, monkeypatch) == [f"commands/injected.py:2: '{name}' of {path}"]


def test_a_declared_parameter_in_the_wrong_section_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "from cntkpy.readers.parameters import ReaderParameters as P; P(section.section('SGD')).reader_type"
    assert look(program, CONFIG, monkeypatch) == ["commands/injected.py:2: 'readerType' of m.cntk:a:SGD"]


@pytest.mark.parametrize(
    "program",
    [
        "section.find('modelPath')",
        "section.section('SGD').find('maxEpochs')",
        "from cntkpy.commands.actions.train import TrainParameters as P; P(section).sgd.max_epochs",
        "from cntkpy.readers.parameters import ReaderParameters as P; P.reader_type.find(section.section('SGD'))",
        "[inside.exists('maxEpochs') for _, inside in section.inner()]",
    ],
)
def test_declared_reads_are_not(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(program, CONFIG, monkeypatch) == []


def test_the_user_may_choose_names(monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIG.replace("action = look", "action = look ; outputNodeNames = net") + "net = 1\n"
    program = (
        "from cntkpy.commands.actions.write import WriteParameters as P; section.find(P.output_nodes.read(section)[0])"
    )
    assert look(program, config, monkeypatch) == []
