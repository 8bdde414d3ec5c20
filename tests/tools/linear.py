"""Regular expressions of the packages, and texts on which a pattern that is not linear takes long."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ANYWHERE = {"search", "sub", "subn", "split", "findall", "finditer"}
METHODS = {"match", "fullmatch", *ANYWHERE}

SCREEN = 700
"""Repetitions of the first look: a quadratic pattern takes a few milliseconds for them, a linear one microseconds."""
SLOW = 4e-4
"""Seconds from which on the growth is measured."""
MUCH = 0.1
"""Seconds from which on larger texts are not tried any more."""
GROWTH = 3.4
"""A pattern fails if twice the text takes more than so many times as long, three times in a row; linear is 2."""


@dataclass
class Used:
    """A pattern, where it stands, and the methods that it is called with."""

    pattern: re.Pattern[Any]
    place: str
    methods: set[str] = field(default_factory=set)


def modules() -> Iterator[tuple[Any, Path]]:
    """Every module of the packages, imported."""
    for path in sorted((ROOT / "cntkpy").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[-1] != "__main__":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # names of betas of CNTK 2
                module = importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
            yield module, path


def patterns_in(value: object, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """The patterns in a value of a module, in containers and attributes of classes of the packages, too."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth > 3:
        return
    elif isinstance(value, dict):
        for one in value.values():
            yield from patterns_in(one, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from patterns_in(one, depth + 1)
    elif isinstance(value, type) and value.__module__.split(".")[0] == "cntkpy":
        for one in list(vars(value).values()):
            yield from patterns_in(one, depth + 1)


def called_methods(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """What has a method of patterns called, and the method: `NUMBER.fullmatch(...)` or `map(NUMBER.match, ...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            yield node.value, node.attr


def literal_calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Every call of a function of `re` that takes a pattern, and the function's name."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in {*METHODS, "compile"}
        ):
            yield node, node.func.attr


def value_of(node: ast.expr, names: dict[str, Any], local: dict[str, Any]) -> Any:
    """The text of a pattern; None where it is made of what only a call knows."""
    try:
        return eval(compile(ast.Expression(node), "pattern", "eval"), {**names, **local})
    except Exception:
        return None


def flags_of(call: ast.Call, names: dict[str, Any]) -> int:
    """The flags of a call of `re`."""
    for node in [*call.args[1:], *(keyword.value for keyword in call.keywords if keyword.arg == "flags")]:
        value = value_of(node, names, {})
        if isinstance(value, re.RegexFlag):
            return int(value)
    return 0


# ------------------------------------------------------------------------------------------------ texts


@dataclass
class Parts:
    """What a pattern is made of: single characters, and small texts that it, or a part of it, matches."""

    characters: dict[int, None] = field(default_factory=dict)
    texts: dict[str, None] = field(default_factory=dict)
    heads: dict[str, None] = field(default_factory=dict)
    barred: dict[int, None] = field(default_factory=dict)


def members(items: Any) -> list[int]:
    """A few characters of a class: its ends, letters, a digit, a blank."""
    found: list[int] = []
    negated = any(op is codes.NEGATE for op, _ in items)
    for op, value in items:
        if op is codes.LITERAL:
            found.append(value)
        elif op is codes.RANGE:
            found += [value[0], value[1]]
        elif op is codes.CATEGORY:
            found += CATEGORIES[value]
    if negated:
        rest = [ord(c) for c in "a0_ \t.x-=é:" if ord(c) not in found and not any(_in(items, ord(c)))]
        return rest or [0x1F]
    return found


def _in(items: Any, code: int) -> Iterator[bool]:
    for op, value in items:
        yield op is codes.RANGE and value[0] <= code <= value[1]
        yield op is codes.CATEGORY and code in CATEGORIES[value]


CATEGORIES: dict[Any, list[int]] = {
    codes.CATEGORY_DIGIT: [ord("0")],
    codes.CATEGORY_NOT_DIGIT: [ord("a"), ord(" ")],
    codes.CATEGORY_SPACE: [ord(" "), ord("\n"), ord("\t")],
    codes.CATEGORY_NOT_SPACE: [ord("a"), ord("0"), ord("=")],
    codes.CATEGORY_WORD: [ord("a"), ord("0"), ord("_")],
    codes.CATEGORY_NOT_WORD: [ord(" "), ord("."), ord("=")],
}
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def examples(items: Any, parts: Parts, head: str) -> list[str]:
    """A few texts that a parsed pattern matches; on the way, what its parts match is noted in `parts`.

    Args:
        items: what `re._parser.parse` gives, or a part of it.
        parts: where characters, texts and heads are added.
        head: what is before.
    """
    made = [""]
    for op, value in items:
        one = _matched(op, value, parts, head + made[0])
        made = [before + behind for before, behind in itertools.product(made[:3], one[:4])][:6]
        parts.heads[head + made[0]] = None
    return made


def _matched(op: Any, value: Any, parts: Parts, head: str) -> list[str]:
    """A few texts that one item of a parsed pattern matches."""
    if op is codes.LITERAL:
        parts.characters[value] = None
        return [chr(value)]
    if op is codes.NOT_LITERAL:
        return [next(c for c in "a0 " if ord(c) != value)]
    if op is codes.ANY:
        return ["a", " "]
    if op is codes.IN:
        found = members(value)
        if value[0][0] is codes.NEGATE:
            parts.barred.update(dict.fromkeys(one for op, one in value[1:] if op is codes.LITERAL))
        parts.characters.update(dict.fromkeys(found))
        return [chr(found[0]), chr(found[-1])]
    if op in REPEATS:
        low, _, inside = value
        body = examples(inside, parts, head)
        parts.texts.update(dict.fromkeys(text for text in body if text))
        return [text * max(low, 1) for text in body] + ([""] if low == 0 else [])
    inside = _inside(op, value)
    return [text for one in inside for text in examples(one, parts, head)[:2]] or [""]


def _inside(op: Any, value: Any) -> list[Any]:
    """The patterns of which an item has one; those of conditions and of looks ahead match nothing themselves."""
    if op is codes.SUBPATTERN:
        return [value[3]]
    if op is codes.ATOMIC_GROUP:
        return [value]
    if op is codes.BRANCH:
        return list(value[1])
    if op is codes.GROUPREF_EXISTS:
        return [side for side in value[1:] if side]
    return []


def attacks(pattern: re.Pattern[Any]) -> Iterator[Callable[[int], Any]]:
    """Functions from a number of repetitions to a text on which the pattern may take long."""
    source = pattern.pattern
    binary = isinstance(source, bytes)
    parts = Parts()
    whole = examples(parser.parse(source, pattern.flags & ~re.UNICODE & ~re.DEBUG), parts, "")
    letters = [chr(code) for code in parts.characters if code < 0x10000][:24]
    pumps = dict.fromkeys([*letters, *list(parts.texts)[:16], *whole[:3], "a", "0", " ", "\n"])
    pumps.update(dict.fromkeys(one + two for one, two in itertools.pairwise(letters[:10])))
    heads = list(dict.fromkeys(["", *parts.heads, *(text for text in parts.texts)]))[:10]
    tails = dict.fromkeys(["", "!", "\n", "x", (letters or [" "])[-1], *map(chr, list(parts.barred)[:3])])

    def text(head: str, pump: str, tail: str) -> Callable[[int], Any]:
        def made(count: int) -> Any:
            found = head + pump * count + tail
            return found.encode("latin-1", "replace") if binary else found

        return made

    for head, pump, tail in itertools.product(heads, pumps, tails):
        if pump:
            yield text(head, pump, tail)


def run(pattern: re.Pattern[Any], method: str, text: Any) -> float:
    """Seconds that a method of a pattern takes."""
    begun = time.thread_time()
    if method in ("match", "fullmatch"):
        getattr(pattern, method)(text)
    else:
        for _ in pattern.finditer(text):
            pass
    return time.thread_time() - begun


def slow_text(used: Used) -> str:
    """A text that the pattern takes more than linear time for, as Python writes its beginning; or nothing."""
    uses = {"finditer" if method in ANYWHERE else method for method in used.methods}
    for made in attacks(used.pattern):
        for method in uses:
            if _is_slow(used.pattern, method, made):
                return f"{method}: {made(12)!r}"
    return ""


def _is_slow(pattern: re.Pattern[Any], method: str, made: Callable[[int], Any]) -> bool:
    for count in (16, 32, 150, SCREEN):  # few of them first: an exponential pattern would not end
        text = made(count)
        if run(pattern, method, text) > SLOW and min(run(pattern, method, text) for _ in range(3)) > SLOW:
            return _grows(pattern, method, made, count)
    return False


def _grows(pattern: re.Pattern[Any], method: str, made: Callable[[int], Any], count: int) -> bool:
    """Whether the time grows faster than the text, at several sizes in a row."""
    before = min(run(pattern, method, made(count)) for _ in range(3))
    for _ in range(3):
        count += count if count > 100 else 4
        now = min(run(pattern, method, made(count)) for _ in range(3))
        if now < GROWTH * before:
            return False
        if now > MUCH:
            return True
        before = now
    return True
