"""CNTK's names with their arguments in its order: `signatures.txt` against the compat module."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C

TABLE = Path(__file__).with_name("signatures.txt").read_text(encoding="utf-8")

NOT_HERE = {
    "lattice_sequence_with_softmax", "custom_proxy_op", "register_native_user_function", "native_user_function",
}  # fmt: skip
"""Names that do not exist here; each says what there is instead."""


def entries() -> list[tuple[str, str]]:
    """Pairs of a module and a line, of lines that are joined."""
    found, module = [], ""
    for line in re.sub(r"\n    +", " ", TABLE).splitlines():
        if line.startswith("["):
            module = line.strip("[]")
        elif line and not line.startswith("#"):
            found.append((module, line))
    return found


SAMPLES: dict[str, Any] = {
    "Axis": C.Axis(0),
    "NDArrayView": C.NDArrayView((2,), np.float32),
    "Value": C.Value(np.zeros((2, 3), np.float32)),
    "DeviceDescriptor": C.cpu(),
    "Record": C.variables.Record(a=1),
    "Variable": C.input_variable(2),
    "VariableMixin": C.input_variable(2),
    "Parameter": C.parameter(2),
    "Constant": C.constant(2),
    "Function": C.layers.Dense(2)(C.input_variable(2)),
    "Learner": C.sgd(C.parameter(2), 0.1),
    "Evaluator": C.Evaluator(C.reduce_sum(C.input_variable(2))),
}
"""Objects of classes whose attributes belong to objects."""


def trainer() -> Any:
    loss = C.reduce_sum(C.input_variable(2) * C.parameter(2))
    return C.Trainer(None, loss, C.sgd(loss.parameters, 0.1))


def own_parameters(function: Any) -> list[inspect.Parameter]:
    return [one for one in inspect.signature(function).parameters.values() if one.name != "self"]


def arguments_of(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def differences(function: Any, wanted: list[str]) -> list[str]:
    """How the arguments of a function differ from those of a line: it may have more of them, which may be left out."""
    own, found = own_parameters(function), []
    named = {one.name: one for one in own}
    several = next((one.name for one in own if one.kind is one.VAR_POSITIONAL), None)
    if "**" in wanted and not any(one.kind is one.VAR_KEYWORD for one in own):
        found.append("takes no other names")
    places = [one.partition("=")[0] for one in wanted if one not in ("*", "**")]
    by_place = [one.name for one in own if one.kind is one.POSITIONAL_OR_KEYWORD]
    if "*" in wanted and several is None:
        found.append("takes no number of operands")
    elif "*" not in wanted and by_place[: len(places)] != [one for one in places if one in by_place]:
        found.append(f"has {by_place}")
    for one in wanted:
        name, may_miss, default = one.partition("=")
        if one in ("*", "**"):
            continue
        if name not in named:
            found.append(f"has no argument '{name}'")
            continue
        given = named[name].default
        if may_miss and given is inspect.Parameter.empty:
            found.append(f"needs '{name}'")
        if default and not same(given, eval(default)):
            found.append(f"has {name}={given!r}")
    more = [one for one in own if one.name not in places and one.kind is one.POSITIONAL_OR_KEYWORD]
    found += [f"needs '{one.name}'" for one in more if one.default is one.empty]
    return found


def same(given: Any, wanted: Any) -> bool:
    return bool(given == wanted) or (isinstance(given, tuple) and given == (wanted,))


def target(module: str, path: str) -> Any:
    """What a line is about; a name with a point is an attribute of an object of that class."""
    owner = importlib.import_module(f"cntkpy.compat.{module}")
    name, _, attribute = path.partition(".")
    if not attribute:
        return getattr(owner, name)
    of_class = getattr(owner, name)
    return getattr(of_class if hasattr(of_class, attribute) else SAMPLES[name], attribute)


@pytest.mark.parametrize(("module", "line"), entries())
def test_a_name_has_cntks_arguments(module: str, line: str) -> None:
    head, _, members = line.partition(": ")
    path, _, rest = head.removeprefix("class ").partition("(")
    if path in NOT_HERE:
        with pytest.raises(AttributeError, match=r"of CNTK does not exist in cntkpy: (use|there)"):
            target(module, path)
        return
    found = target(module, path)
    if rest:
        assert differences(found, arguments_of(rest.removesuffix(")"))) == [], line
    sample = trainer() if path == "Trainer" else SAMPLES.get(path, found)
    assert [one for one in members.split() if not hasattr(sample, one)] == []


def test_the_table_has_every_module_and_a_wrong_one_is_found() -> None:
    assert len(entries()) > 280
    assert differences(lambda x, name="": x, ["arg", "name="]) == [
        "has ['x', 'name']",
        "has no argument 'arg'",
        "needs 'x'",
    ]
    assert differences(lambda x, alpha=2: x, ["x", "alpha=1"]) == ["has alpha=2"]
    assert differences(lambda x, y: x, ["x", "y="]) == ["needs 'y'"]
    assert differences(lambda y, x: x, ["x", "y"]) == ["has ['y', 'x']"]
