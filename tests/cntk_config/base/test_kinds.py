"""Every kind that the program names is in the table of kinds, and every kind of the table is named in the program."""

import ast
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from syntax import imports_and_calls

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, UserError
from cntkpy.cntk_config.base.kinds import HOME, KINDS, OTHER, RULES

ROOT = Path(__file__).parents[3]
PACKAGES = ("cntk_config", "readers", "networks", "trainers", "commands")
CLASSES = ("ConfigError", "UserError", "Diagnostic")
FUNCTIONS = ("error", "warning", "_found", "_note", "_error", "located")
"""What makes errors and warnings."""
KIND = re.compile(r"[A-Z][A-Za-z]+")


def kinds_in(text: str) -> set[str]:
    """The kinds that a program names: the first argument of what makes errors, or its argument `kind`."""
    found: set[str] = set()
    for node in imports_and_calls(text):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = [word.value for word in node.keywords if word.arg == "kind"]
            if not given:
                given = node.args[:1] if name in CLASSES else node.args if name in FUNCTIONS else []
            texts = [value.value for value in given if isinstance(value, ast.Constant)]
            found |= {text for text in texts if isinstance(text, str) and KIND.fullmatch(text)}
    return found


SOURCES = {
    path: path.read_text(encoding="utf-8") for one in PACKAGES for path in sorted((ROOT / "cntkpy" / one).rglob("*.py"))
}
PARAMETERS = {name for text in SOURCES.values() for name in re.findall(r"""\bParameter\(\s*"(\w+)\"""", text)}
"""Names of parameters, which are the first argument of `section.error`."""


def test_the_first_argument_of_an_error_is_its_kind() -> None:
    assert kinds_in("raise UserError('NoModel', text)\np.error('x', 'y', kind='BadValue')") == {"NoModel", "BadValue"}
    for error in (UserError("NoModel", "m", hint="h"), ConfigError("NoModel", "m", hint="h")):
        assert error.diagnostic == Diagnostic("NoModel", "m", hint="h")
        assert error.diagnostic.rule.code == "CK071"


def test_a_kind_is_an_object_of_the_table() -> None:
    error = UserError("NoModel", "m")
    assert error.kind is KINDS["NoModel"] and error.kind == "NoModel"
    assert (error.kind.code, error.kind.severity) == ("CK071", "error")
    assert error.kind.page == f"{HOME}/docs/findings/running.md#ck071"
    assert pickle.loads(pickle.dumps(error)).kind is error.kind
    own = UserError("plugin.KindOfItsOwn", "m").kind
    assert (own, own.rule) == ("plugin.KindOfItsOwn", OTHER)
    assert pickle.loads(pickle.dumps(own)).rule is OTHER


@pytest.mark.parametrize("make", [UserError, ConfigError, Diagnostic])
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("BadIntger", "did you mean 'BadInteger'?"),
        ("Xyzzy", "a kind of your own has a dot: 'mypackage.Xyzzy'"),
        ("", "a kind of your own has a dot: 'mypackage.BadLine'"),
        ("my reader.BadLine", "a kind of your own has a dot: 'mypackage.BadLine'"),
    ],
)
def test_a_typo_of_a_kind_is_found_where_the_error_is_made(
    make: Callable[[str, str], object], name: str, advice: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(f"'{name}' is not a kind of error; {advice}")):
        make(name, "m")


def test_every_kind_that_is_raised_is_in_the_table() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {kind}"
        for path, text in SOURCES.items()
        for kind in kinds_in(text) - PARAMETERS
        if kind not in KINDS
    ]
    assert not found, "\n".join(found)


def test_every_kind_of_the_table_is_named_in_the_program() -> None:
    text = "".join(text for path, text in SOURCES.items() if path.name != "kinds.py")
    made = {f"Unknown{what}" for what in ("Reader", "Deserializer", "Writer")}
    assert not [kind for rule in RULES for kind in rule.kinds if f'"{kind}"' not in text and kind not in made]
