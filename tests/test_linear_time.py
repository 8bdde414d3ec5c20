"""No text of any length makes a regular expression take more than linear time."""

from __future__ import annotations

import ast
import functools
import re
from types import ModuleType

import pytest
from linear import METHODS, Used, called_methods, flags_of, literal_calls, modules, patterns_in, slow_text, value_of

from cntkpy import grammar
from cntkpy.cntk_config.parse import _usual
from cntkpy.cntk_config.pieces import _patterns
from cntkpy.commands.projects.project import _pattern
from cntkpy.readers.data_api.words import _BEFORE, _PHRASES
from cntkpy.readers.formats.tables.csv.rows import _QUOTED

MADE = {
    "cntkpy.grammar.tables": [],  # the terminals of all grammars are tried
    "cntkpy.cntk_config.parse": [one for sign in ";:*" for one in vars(_usual(sign)).values()],
    "cntkpy.cntk_config.pieces": [
        one for sign in ";:*" for is_list in (False, True) for one in patterns_in(vars(_patterns(sign, is_list)))
    ],
    "cntkpy.networks.builders.ndl.parse": [re.compile(r"[^\s:](?:[^:]*[^\s:])?")],
    "cntkpy.readers.formats.tables.csv.rows": list(_QUOTED.values()),
    "cntkpy.readers.formats.text.fallback": [re.compile(rb"\|x(?:[^!-{}~]|\Z)")],
    "cntkpy.trainers.checkpoints.checkpoint": [re.compile(r"m\.(\d+)\.partial")],
    "cntkpy.trainers.checkpoints.keeping": [re.compile(r"m\.(0|[1-9][0-9]*)")],
    "cntkpy.trainers.checkpoints.lock": [],  # of a name of a file and parts that are tried
    "cntkpy.commands.runs.table": [re.compile(r"(?<![^/\s\"])a(?![^/\s\"])"), re.compile(r"(?<![\w.])a(?![\w.])")],
    "cntkpy.commands.projects.project": [_pattern("**/a*b*.cntk")],
    "cntkpy.commands.tools.help": [re.compile(r"^## CK010\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)],
    "cntkpy.commands.checks.names": [re.compile(r"a", re.IGNORECASE)],
    "cntkpy.commands.checks.look": [re.compile(r"m(\.[0-9]+)?")],
    "cntkpy.commands.editor.occurrences": [re.compile(r"\bx\b")],
    "cntkpy.commands.actions.dump_node": [],  # the user's own
    "cntkpy.commands.actions.svd": [],
    "cntkpy.networks.source.layout": [re.compile(r"\bx\b")],
    "cntkpy.networks.nodes.source_support.body": [re.compile(r"(?<![\w.])a\b")],
    "cntkpy.readers.data_api.words": [re.compile(_BEFORE + pattern) for pattern, _ in _PHRASES],
}
"""Patterns that functions make, by module, with usual values for their parts."""
SEARCHED = (
    "cntkpy.networks.builders.ndl.parse",
    "cntkpy.readers.formats.tables.csv.rows",
    "cntkpy.readers.formats.text.fallback",
    "cntkpy.commands.editor.occurrences",
    "cntkpy.networks.nodes.source_support.body",
    "cntkpy.networks.source.layout",
    "cntkpy.readers.data_api.words",
)
"""Modules that search a text with them; the others match at a place, or the whole of a name."""


class Gathered:
    """Every pattern of the packages with its uses."""

    def __init__(self) -> None:
        self.found: dict[tuple[object, int], Used] = {}
        self.unknown: list[str] = []
        """The modules with calls whose pattern only a call knows."""
        self._of_attributes: dict[str, set[str]] = {}
        self._names: dict[tuple[object, int], set[str]] = {}
        for module, path in modules():
            for name, value in list(vars(module).items()):
                for pattern in patterns_in(value):
                    self.add(pattern, f"{module.__name__}.{name}", name)
            tree = ast.parse(path.read_text(encoding="utf-8"))
            self._add_methods(tree, module)
            self._add_literals(tree, module)
        for key, used in self.found.items():
            for name in self._names[key]:
                used.methods |= self._of_attributes.get(name, set())
            used.methods = used.methods or {"match", "fullmatch", "search"}
        self._add_others()

    def add(self, pattern: re.Pattern, place: str, name: str = "") -> Used:
        key = (pattern.pattern, pattern.flags)
        self._names.setdefault(key, set()).add(name)
        return self.found.setdefault(key, Used(pattern, place))

    def _add_methods(self, tree: ast.AST, module: ModuleType) -> None:
        for owner, method in called_methods(tree):
            if isinstance(owner, ast.Name):
                for pattern in patterns_in(vars(module).get(owner.id)):
                    self.add(pattern, f"{module.__name__}.{owner.id}", owner.id).methods.add(method)
            elif isinstance(owner, ast.Attribute):
                self._of_attributes.setdefault(owner.attr, set()).add(method)

    def _add_literals(self, tree: ast.AST, module: ModuleType) -> None:
        for call, function in literal_calls(tree):
            text = value_of(call.args[0], vars(module), {})
            if isinstance(text, str | bytes):
                used = self.add(re.compile(text, flags_of(call, vars(module))), f"{module.__name__}:{call.lineno}")
                used.methods |= {function} & METHODS
            else:
                self.unknown.append(module.__name__)

    def _add_others(self) -> None:
        for place, made in MADE.items():
            for pattern in made:
                self.add(pattern, place).methods.add("finditer" if place in SEARCHED else "match")
        for name in ("config", "brainscript", "ndl", "mel", "filter"):
            for one in load_grammar(name).terminals:
                pattern = re.compile(one.pattern.to_regexp(), re.MULTILINE)
                self.add(pattern, f"{name}.lark: {one.name}").methods.add("match")


@functools.cache
def gathered() -> Gathered:
    return Gathered()


def load_grammar(name: str):
    """A grammar with all its terminals, those that only `lexical` names, too."""
    if name == "config":
        return grammar.load(name, start="lexical", lexer="basic")
    starts = {"brainscript": ["start", "one_expression"], "ndl": "start", "mel": ["start", "call"], "filter": "start"}
    return grammar.load(name, start=starts[name])


@pytest.mark.thorough
def test_every_pattern_that_a_function_makes_has_an_example() -> None:
    assert set(gathered().unknown) == set(MADE)


@pytest.mark.thorough
def test_every_pattern_takes_linear_time() -> None:
    found = gathered().found
    assert len(found) > 150
    slow = {used.place: text for used in found.values() if (text := slow_text(used))}
    assert not slow


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?", "fullmatch"),
        (r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)?#inf", "fullmatch"),
        (rb"[^A-Za-z0-9+/=]+$", "search"),
        (r"(\S+)[ \t]+([^|\[\]]*[^|\[\] \t]):(\d{1,18})", "fullmatch"),
        (r"regex[ \t]*=[^;\n]*\Z", "search"),
        (r"([A-Za-z_][\w]*)\s*=\s*$", "search"),
        (r"(?:^|[\s;])([A-Za-z_]\w*)\s*=\s*([^=;#]*)$", "search"),
        (r"[ \t]*\n[ \t\n]*", "sub"),
        (r"(\w+\s*)*:", "match"),
    ],
)
def test_what_is_not_linear_is_found(pattern: str | bytes, method: str) -> None:
    assert slow_text(Used(re.compile(pattern), "here", {method}))
