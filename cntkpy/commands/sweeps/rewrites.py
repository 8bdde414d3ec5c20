"""Choices as other programs write them, and choices inside of sections: how they are written in a sweep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

OPEN, CLOSED = "([{", ")]}"
CALL = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*\((.*)\)", re.DOTALL)
FORMS = ("choice", "range", "zip")
CHOICES = frozenset({"categorical", "choose", "choices", "oneof", "grid", "gridsearch", "values", "discreteuniform"})
RANGES = frozenset({"uniform", "interval", "float", "int", "randint", "integer", "real", "between"})
LOGARITHMS = frozenset({"loguniform", "logrange", "reciprocal", "loginterval", "logfloat", "logint", "lograndint"})
STEPPED = {"quniform": "", "qrandint": "", "arange": ""}
"""Forms whose third argument is a step."""
COUNTED = {"linspace": "", "geomspace": ", log", "logspace": ", log"}
"""Forms whose third argument is a number of values, and what a range of them has."""
LOW, HIGH = (
    ("low", "lower", "min", "minimum", "start", "a", "from"),
    ("high", "upper", "max", "maximum", "stop", "b", "to"),
)
TRUE, FALSE = ("true", "1", "yes", "log"), ("false", "0", "no")


def split(text: str, separator: str) -> list[str]:
    """Return the pieces of a text between separators outside of brackets and quotes, without the blanks around them.

    A closing bracket that closes nothing ends no piece.
    """
    pieces: list[str] = []
    depth, quoted, begin = 0, False, 0
    for index, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char == separator and depth == 0:
            pieces.append(text[begin:index])
            begin = index + 1
        elif char in OPEN:
            depth += 1
        elif char in CLOSED:
            depth = max(0, depth - 1)
    return [segment.strip() for segment in [*pieces, text[begin:]]]


def rewritten(form: str, parts: Sequence[str]) -> str | None:
    """Return a choice of another program as a sweep has it; None: it is no form that is known.

    Args:
        form: What stands in front of the brackets: `loguniform`, `tune.log-uniform`, `suggest_float`.
        parts: What stands in them.
    """
    name = re.sub("[-_]", "", form.rpartition(".")[2]).lower().removeprefix("suggest")
    words = [part for number, part in enumerate(parts) if number or part[:1] not in ("'", '"') or name in CHOICES]
    if name in CHOICES:
        elements = [part for word in words for part in (split(word[1:-1], ",") if word[:1] in OPEN else [word])]
        return f"choice({', '.join(elements)})"
    options = dict(_option(word) for word in words if "=" in word)
    numbers = [word for word in words if "=" not in word]
    if name not in RANGES | LOGARITHMS | STEPPED.keys() | COUNTED.keys():
        return None
    numbers += [options[key] for keys in (LOW, HIGH) for key in keys if key in options]
    if len(numbers) < 2:
        return "range(LOW, HIGH, log)" if name in LOGARITHMS else "range(LOW, HIGH)"
    bounds, third = numbers[:2], numbers[2:3]
    log = ", log" if name in LOGARITHMS or options.get("log", "").lower() in TRUE else ""
    step = options.get("step") or options.get("q") or (third[0] if third and name in STEPPED else "")
    if name == "logspace":
        bounds = [f"1e{bound}" for bound in bounds]
    if name in COUNTED:
        count = options.get("num") or options.get("count") or (third[0] if third else "5")
        return f"range({', '.join(bounds)}{COUNTED[name]}, count={count})"
    return f"range({', '.join(bounds)}{log}{f', step={step}' if step and not log else ''})"


def _option(word: str) -> tuple[str, str]:
    name, _, text = word.partition("=")
    return name.strip().lower(), text.strip()


def inside_sections(word: str) -> Iterator[str]:
    """Return the choices inside of the sections of a word, each as a word: `train/SGD/maxEpochs=1,2`.

    A comma in a section ends a value, and what follows without `=` is a parameter that is true; of a sweep it is
    a choice, as outside of sections.
    """
    name, equals, value = (part.strip() for part in word.partition("="))
    if not equals or value[:1] != "[" or value[-1:] != "]":
        return
    for inner in split(value[1:-1], ";"):
        text = inner.partition("=")[2].strip()
        if not text:
            continue
        pieces = split(text, ",")
        call = CALL.fullmatch(text)
        if call is not None and len(pieces) == 1:
            parts = split(call[2], ",")
            form = text if call[1] in FORMS else rewritten(call[1], parts)
            if form is not None:
                yield f"{name}/{inner.partition('=')[0].strip()}={form}"
        elif len(pieces) > 1 and not any("=" in piece for piece in pieces[1:]):
            yield f"{name}/{inner.partition('=')[0].strip()}={text}"
        else:
            for path in inside_sections(inner):
                yield f"{name}/{path}"


def without_brackets(word: str) -> str | None:
    """Return the choice that a list in brackets may be meant for, such as `rate=0.1,0.2` for `rate=[0.1, 0.2]`."""
    name, _, value = (part.strip() for part in word.partition("="))
    is_list = value[:1] in OPEN and value[-1:] in CLOSED and "=" not in value
    pieces = split(value[1:-1], ",") if is_list and value else []
    return f"{name}={','.join(pieces)}" if len(pieces) > 1 and all(pieces) else None
