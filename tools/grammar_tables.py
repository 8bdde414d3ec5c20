"""Write what a start reads in place of its sources: `python -m tools.grammar_tables [--check]`.

- `cntkpy/grammar/tables.json`: parsing tables, which Lark makes of the grammars
- `cntkpy/networks/builders/brainscript/library/trees.txt`: syntax trees of BrainScript's library
- `cntkpy/networks/nodes/index.json`: names of the functions of networks
"""

from __future__ import annotations

import json
import sys
from typing import Any

from lark import Lark
from lark.lexer import Lexer
from lark.parse_tree_builder import maybe_create_child_filter
from lark.parsers.lalr_analysis import Shift

from cntkpy import grammar
from cntkpy.grammar.tables import FILE
from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.language import trees
from cntkpy.networks.builders.brainscript.language.library import definitions, parsed_value
from cntkpy.networks.builders.brainscript.operations import operations_of
from cntkpy.networks.builders.brainscript.program import library

STARTS = {"config": ["set_text", "array_text"], "brainscript": ["start", "one_expression"], "ndl": ["start"]}
"""Grammars with tables, and the rules that texts follow."""


class _NoLexer(Lexer):
    """The lexer of a grammar whose tokens a program gives."""

    def __init__(self, lexer_conf: object) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Any:
        raise NotImplementedError


def text() -> str:
    """Return the whole file: a line for each rule and each state."""
    grammars = (f'"{name}": {_lines(_table(name, starts))}' for name, starts in STARTS.items())
    return "{" + ",\n".join(grammars) + "}\n"


def _lines(table: dict[str, Any]) -> str:
    parts: list[str] = []
    for key, value in table.items():
        rows = ",\n".join(map(_compact, value)) if isinstance(value, list) else ""
        parts.append(f'"{key}": ' + (f"[\n{rows}]" if rows else _compact(value)))
    return "{" + ",\n".join(parts) + "}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _table(name: str, starts: list[str]) -> dict[str, Any]:
    """Return states and rules of a grammar, numbered in the order in which they are met from its start rules."""
    lines = (grammar.FOLDER / f"{name}.lark").read_text().splitlines()
    given = any("%declare" in line for line in lines)
    patterns = _patterns(name) if any(line.startswith("lexical:") for line in lines) else {}
    parser = grammar.load(name, start=starts, lexer=_NoLexer if given else "basic")
    words = {"words": None, "keywords": {}, "ignored": []} if given else _words(parser)
    table = parser.parser.parser._parse_table  # pyright: ignore
    numbers: dict[int, int] = {}
    order = [table.start_states[start] for start in starts]
    rules: dict[Any, int] = {}
    states: list[dict[str, int]] = []
    for state in order:
        numbers.setdefault(state, len(numbers))
    for state in order:
        actions: dict[str, int] = {}
        for symbol, (action, target) in sorted(table.states[state].items()):
            if action is Shift:
                if target not in numbers:
                    numbers[target] = len(numbers)
                    order.append(target)
                actions[symbol] = numbers[target]
            else:
                actions[symbol] = ~rules.setdefault(target, len(rules))
        states.append(actions)
    return {
        "lexical": patterns,
        **words,
        "starts": {start: [numbers[table.start_states[start]], numbers[table.end_states[start]]] for start in starts},
        "rules": [_rule(rule) for rule in rules],
        "states": states,
    }


def _patterns(name: str) -> dict[str, str]:
    """Return the terminals that the rule `lexical` of a grammar names."""
    lexical = grammar.load(name, start="lexical", lexer="basic")
    terms = sorted({term.name for rule in lexical.rules for term in rule.expansion if term.is_term})
    return {term: lexical.get_terminal(term).pattern.to_regexp() for term in terms}


def _rule(rule: Any) -> list[Any]:
    """Return what a rule does with its parts: see `TableParser`."""
    options = rule.options
    child_filter = maybe_create_child_filter(rule.expansion, options.keep_all_tokens, False, options.empty_indices)
    kept, missing = None, 0
    if child_filter is not None:
        kept, *nones = child_filter.args
        kept, missing = [[*part, 0][:3] for part in kept], nones[0] if nones else 0
    name = rule.alias or options.template_source or rule.origin.name
    is_single = bool(options.expand1 and not rule.alias)
    return [
        rule.origin.name, len(rule.expansion), None if name.startswith("_") else name, kept, missing, is_single
    ]  # fmt: skip


def _words(parser: Lark) -> dict[str, Any]:
    """Return the pattern of all words, the words that a pattern of names matches, too, and those without meaning."""
    lexer: Any = parser.parser.lexer
    (pattern,) = (matcher.pattern for matcher in lexer.scanner._mres)  # pyright: ignore
    keywords = {
        kind: {term.pattern.value: term.name for term in callback.scanner.terminals}
        for kind, callback in lexer.callback.items()
    }
    return {"words": pattern, "keywords": keywords, "ignored": sorted(lexer.ignore_types)}


def trees_text() -> str:
    """Return the whole file of trees."""
    text, members = library()
    return trees.kept_trees(text, ((place, parsed_value(place)) for place in definitions(members)))


def index_text() -> str:
    """Return the whole file with names of functions and operations."""
    modules = {
        module: [
            [name.lower() for kind in nodes.declared(module) for name in kind.names],
            [operation.name for operation in operations_of(nodes.declared(module))],
        ]
        for module in nodes.MODULES
    }
    names = [name for parts in modules.values() for name in parts[0]]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise AssertionError(f"two kinds of nodes are called {repeated}")
    return "{" + ",\n".join(f'"{module}": {_compact(parts)}' for module, parts in modules.items()) + "}\n"


def main() -> int:
    """Write the files, or compare with them."""
    for file, content in {FILE: text(), nodes.INDEX: index_text(), trees.FILE: trees_text()}.items():
        if "--check" not in sys.argv:
            file.write_text(content, encoding="utf-8")
        elif file.read_text(encoding="utf-8") != content:
            print(f"{file} is not what its source gives: run `python -m tools.grammar_tables`")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
