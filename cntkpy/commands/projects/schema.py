"""Keys of `cntkpy.toml`, declared once: validation, the schema for editors and the reference page derive from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from cntkpy.cntk_config.base.diagnostics import Diagnostic, suggestion
from cntkpy.commands.projects.toml_text import RUN_HINT, Path_, TomlText

SCHEMA_URL = "http://json-schema.org/draft-07/schema#"


@dataclass(frozen=True)
class Form:
    """A kind of value.

    Attributes:
        name: Its name in messages and on the page.
        accepts: Returns True for a value of this kind.
        schema: Its JSON schema.
    """

    name: str
    accepts: Callable[[Any], bool]
    schema: Mapping[str, Any]


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value))


def _is_matrix(value: Any) -> bool:
    return isinstance(value, list) and all(
        (isinstance(item, str) and item) or (item and _is_texts(item)) for item in cast("list[Any]", value)
    )


def _is_scalars(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(item, str | int | float) for item in cast("dict[str, Any]", value).values()
    )


def _is_text_lists(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_texts(item) for item in cast("dict[str, Any]", value).values())


_TEXT: Mapping[str, Any] = {"type": "string"}
_TEXTS: Mapping[str, Any] = {"type": "array", "items": _TEXT}
TEXT = Form("a text", lambda value: isinstance(value, str), _TEXT)
FLAG = Form("true or false", lambda value: isinstance(value, bool), {"type": "boolean"})
TEXTS = Form("a list of texts", _is_texts, _TEXTS)
MATRIX = Form(
    "a list of globs or of lists of files",
    _is_matrix,
    {"type": "array", "items": {"anyOf": [_TEXT, {**_TEXTS, "minItems": 1}]}},
)
SCALARS = Form(
    "a table of texts and numbers",
    _is_scalars,
    {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
)
TEXT_LISTS = Form("a table of lists of texts", _is_text_lists, {"type": "object", "additionalProperties": _TEXTS})
CONTRACTS = Form("a table of contracts", lambda value: isinstance(value, dict), {"type": "object"})
TABLES = Form("an array of tables", lambda value: isinstance(value, list), {"type": "array"})


class Key(NamedTuple):
    """A key of the project file.

    Attributes:
        name: Its name.
        form: The kind of its value.
        help: Its meaning, in one sentence.
        example: A value, as TOML writes it.
        keys: The keys of each table in an array of tables.
        required: True if a table must have it.
    """

    name: str
    form: Form
    help: str
    example: str
    keys: tuple[Key, ...] = ()
    required: bool = False


RUN = (
    Key("name", TEXT, "Name of the run; with `each`, the beginning of the names of its runs.", '"train"'),
    Key(
        "files",
        TEXTS,
        "Layers of the run in their order, names or globs relative to the project; a later one overrides.",
        '["base.cntk", "prod.cntk"]',
    ),
    Key(
        "each",
        MATRIX,
        "Further layers: every combination of one file of each element makes a run, called `NAME-FILE-FILE`.",
        '["models/*.cntk", ["dev.cntk", "prod.cntk"]]',
    ),
    Key("words", TEXTS, "Words that follow the files, as on the command line.", '["train/SGD/maxEpochs=1"]'),
    Key("variables", SCALARS, "Values of `$variables$`, which the layers may override.", '{ DataDir = "data" }'),
    Key("folder", TEXT, "Working directory of the run, relative to the project.", '"experiments"'),
)
KEYS = (
    Key("run", TABLES, "A run, or a matrix of runs.", "", RUN),
    Key(
        "include", TEXTS, "Globs of files that `check` looks at by themselves, besides the runs.", '["examples/*.cntk"]'
    ),
    Key("exclude", TEXTS, "Globs of files that `check` leaves out.", '["old/**"]'),
    Key("ignore", TEXTS, "Codes of findings, or beginnings of codes, to leave out.", '["CK060"]'),
    Key("per-file", TEXT_LISTS, "Codes to leave out in the files of a glob.", '{ "legacy/*.cntk" = ["CK034"] }'),
    Key("strict", FLAG, "Make every finding an error.", "true"),
    Key(
        "modules",
        TEXTS,
        "The only modules of readers that runs may import; without the key, any. "
        "A check imports none without `--import-modules`.",
        '["our_readers"]',
    ),
    Key("environment", TEXTS, "Environment variables that `${env:NAME}` may use in this file.", '["HOME"]'),
    Key(
        "types",
        CONTRACTS,
        'Contracts of values, by their paths: `{ min = 1, max = 9 }` for numbers, `"a|b"` for words.',
        '{ "train/SGD/maxEpochs" = { min = 1, max = 200 } }',
    ),
)
"""Keys of the top level."""
CONTRACT = (
    Key("min", Form("a number", lambda value: _is_number(value), {"type": "number"}), "Least number.", "1"),
    Key("max", Form("a number", lambda value: _is_number(value), {"type": "number"}), "Greatest number.", "200"),
    Key("required", FLAG, "The value must be given.", "true"),
    Key("choices", TEXT, "Allowed words with `|` between them.", '"dev|prod"'),
)
"""Keys of a contract."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def problems(
    text: TomlText, table: Mapping[str, Any], prefix: Path_, keys: tuple[Key, ...] = KEYS
) -> Iterator[Diagnostic]:
    """Yield the problems of a table and of those inside it, with places and nearest names.

    Args:
        text: The file.
        table: The table.
        prefix: The path of the table in the file.
        keys: The keys that the table may have.
    """
    by_name = {key.name: key for key in keys}
    for name, value in table.items():
        key = by_name.get(name)
        if key is None:
            hint = suggestion(name, by_name) or f"the keys are {', '.join(by_name)}"
            yield Diagnostic("BadProject", f"there is no key '{name}' here", text.key(*prefix, name), hint)
        elif not key.form.accepts(value):
            hint = f"write {name} = {key.example}" if key.example else RUN_HINT
            message = f"{name} expects {key.form.name}"
            if key.form is TABLES and isinstance(value, dict):
                message = f"[{name}] is one table; {name} expects {key.form.name}"
            yield Diagnostic("BadProject", message, text.value(*prefix, name), hint)
        elif key.form is CONTRACTS:
            yield from _contract_problems(text, value, (*prefix, name))
        elif key.keys:
            for index, inner in enumerate(cast("list[Any]", value)):
                if isinstance(inner, dict):
                    yield from problems(text, cast("dict[str, Any]", inner), (*prefix, name, index), key.keys)
                else:
                    message = f"{name} expects an array of tables"
                    yield Diagnostic("BadProject", message, text.value(*prefix, name, index), RUN_HINT)


def is_contract(table: Mapping[str, Any]) -> bool:
    """Return True for a table that is a contract, not a section with contracts inside."""
    is_flat = not any(isinstance(value, dict) for value in table.values())
    return is_flat and any(key.name in table for key in CONTRACT)


def _contract_problems(text: TomlText, table: Mapping[str, Any], prefix: Path_) -> Iterator[Diagnostic]:
    for name, value in table.items():
        path = (*prefix, name)
        if isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            if is_contract(inner):
                yield from problems(text, inner, path, CONTRACT)
            else:
                yield from _contract_problems(text, inner, path)
        elif not isinstance(value, str) or not all(word.strip() for word in value.split("|")):
            hint = 'write { min = 1, max = 9 } or "a|b"'
            yield Diagnostic("BadProject", f"{name} is no contract", text.value(*path), hint)


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the file, for editors (taplo, Even Better TOML)."""
    contract = {
        "anyOf": [
            _TEXT,
            _object(CONTRACT),
            {"type": "object", "additionalProperties": {"$ref": "#/definitions/contract"}},
        ]
    }
    schema: dict[str, Any] = {
        "$schema": SCHEMA_URL,
        "title": "cntkpy.toml",
        **_object(KEYS),
        "definitions": {"contract": contract},
    }
    schema["properties"]["types"]["additionalProperties"] = {"$ref": "#/definitions/contract"}
    return schema


def _object(keys: tuple[Key, ...]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for key in keys:
        properties[key.name] = {"description": key.help, **key.form.schema}
        if key.keys:
            properties[key.name]["items"] = _object(key.keys)
    return {"type": "object", "additionalProperties": False, "properties": properties}


def reference() -> str:
    """Return the tables of the reference page, in Markdown."""
    return (
        "\n".join((*_table("Top level", KEYS), "", *_table("`[[run]]`", RUN), "", *_table("A contract", CONTRACT)))
        + "\n"
    )


def _table(title: str, keys: tuple[Key, ...]) -> Iterator[str]:
    yield f"| {title} | value | meaning | example |"
    yield "|---|---|---|---|"
    for key in keys:
        example = f"`{key.example}`".replace("|", "\\|") if key.example else ""
        meaning = key.help.replace("|", "\\|")
        yield f"| `{key.name}` | {key.form.name} | {meaning} | {example} |"
