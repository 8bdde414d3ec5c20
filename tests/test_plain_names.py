"""Plain names: variables are nouns of the field, docstrings begin with an imperative, of values with a noun.

Counts per package may only fall; `plain-names.json` records them.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from syntax import nodes_of

ROOT = Path(__file__).resolve().parent.parent
RECORD = Path(__file__).with_name("plain-names.json")
PRONOUNS = frozenset(
    ["one", "found", "given", "at", "own", "more", "rest", "what", "before", "other", "others", "those", "told"]
)
BEGINNING = re.compile(r"(?:What|Whether|How|Where|Those|The one)\b")
ARTICLE = re.compile(r"(?:The|An?|All|These|Each|Every|Its|One|Some|True)\b")
PACKAGES = ("cntk_config", "grammar", "readers", "networks", "trainers", "commands")
REST = "cntkpy"
"""Name of the count of all other files of the product."""
MEASURES = ("names", "docstrings", "noun phrases")
Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def bound_pronouns(nodes: list[ast.AST]) -> list[str]:
    """Return pronouns bound as variables, parameters, targets or attributes; `other` of a dunder method is Python's."""
    usual = {
        id(argument)
        for node in nodes
        if isinstance(node, Function) and re.fullmatch("__.*__", node.name)
        for argument in node.args.args
        if argument.arg == "other"
    }
    names = []
    for node in nodes:
        if isinstance(node, ast.arg):
            name = "" if id(node) in usual else node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        elif isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler):
            name = node.name or ""
        else:
            continue
        if name.strip("_") in PRONOUNS:
            names.append(name)
    return names


def docstrings(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the docstrings of the module, of classes and functions, and the texts after assignments."""
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                yield text
            for statement, following in zip(node.body, node.body[1:], strict=False):
                if (
                    isinstance(statement, ast.Assign | ast.AnnAssign)
                    and isinstance(following, ast.Expr)
                    and isinstance(following.value, ast.Constant)
                    and isinstance(following.value.value, str)
                ):
                    yield following.value.value


def noun_phrases(nodes: list[ast.AST]) -> list[str]:
    """Return the names of functions with a result whose docstring begins with an article; a property is a value."""
    return [
        node.name
        for node in nodes
        if isinstance(node, Function)
        and not any("property" in ast.dump(decorator) for decorator in node.decorator_list)
        and node.returns is not None
        and ast.unparse(node.returns) != "None"
        and ARTICLE.match(ast.get_docstring(node) or "")
    ]


def count(nodes: list[ast.AST]) -> tuple[int, int, int]:
    """Return the numbers of pronoun names, of docstrings that begin with a question word, and of noun phrases."""
    questions = sum(BEGINNING.match(text.strip()) is not None for text in docstrings(nodes))
    return len(bound_pronouns(nodes)), questions, len(noun_phrases(nodes))


@pytest.fixture(scope="module")
def counts() -> dict[str, dict[str, int]]:
    totals = {package: dict.fromkeys(MEASURES, 0) for package in (*PACKAGES, REST)}
    for path in sorted((ROOT / "cntkpy").rglob("*.py")):
        folder = path.relative_to(ROOT / "cntkpy").parts[0]
        total = totals[folder if folder in PACKAGES else REST]
        counted = count(nodes_of(path.read_text(encoding="utf-8")))
        for measure, number in zip(MEASURES, counted, strict=True):
            total[measure] += number
    return totals


def test_pronouns_and_question_words_are_counted() -> None:
    text = '''"""What this is."""
class Point:
    """A point."""
    one: int = 0
    """Whether it is one."""
    def __eq__(self, other): return self.x == other.x
    def move(self, at, *, by):
        """How far it moves."""
    def size(self) -> int:
        """The size."""
        self.found = [rest for rest in by]
        if (own := at): _given = own
'''
    nodes = nodes_of(text)
    assert sorted(bound_pronouns(nodes)) == ["_given", "at", "found", "one", "own", "rest"]
    assert count(nodes) == (6, 3, 1)


@pytest.mark.parametrize("package", [*PACKAGES, REST])
@pytest.mark.parametrize("measure", MEASURES)
def test_counts_only_fall(package: str, measure: str, counts: dict[str, dict[str, int]]) -> None:
    allowed, present = json.loads(RECORD.read_text())[package][measure], counts[package][measure]
    advice = {
        "names": f"name variables by nouns of the field, not by {', '.join(sorted(PRONOUNS))}",
        "docstrings": "begin docstrings with an imperative, not with What, Whether, How, Where, Those or The one",
        "noun phrases": "begin docstrings of functions with Return, Yield or another imperative",
    }[measure]
    assert present <= allowed, f"{package}: {measure} rose from {allowed} to {present}; {advice}"
    assert present == allowed, f"{package}: lower {measure} in tests/{RECORD.name} from {allowed} to {present}"
