"""A whole program: the library, a few names from the configuration, and the network that the user describes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cntkpy.cntk_config.base.source import Text
from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.editing import CLASSES as EDITING
from cntkpy.networks.builders.brainscript.language.evaluate import Evaluator
from cntkpy.networks.builders.brainscript.language.expressions import evaluator_of
from cntkpy.networks.builders.brainscript.language.library import library_members
from cntkpy.networks.builders.brainscript.language.parse import parse_expression
from cntkpy.networks.builders.brainscript.language.source import Place, error, joined_text
from cntkpy.networks.builders.brainscript.language.standard import CLASSES as STANDARD
from cntkpy.networks.builders.brainscript.language.syntax import Expression, New, RecordLiteral
from cntkpy.networks.builders.brainscript.language.values import Delayed, Record, kind_of
from cntkpy.networks.builders.brainscript.loading import Load, ModelLoader
from cntkpy.networks.builders.brainscript.network import CLASSES as NETWORK
from cntkpy.networks.builders.brainscript.network import TAGS, NetworkValue
from cntkpy.networks.builders.brainscript.nodes import NodeMaker, Seeds
from cntkpy.networks.files.model_file import load_model
from cntkpy.networks.graph.initialize import KINDS

UNSUPPORTED = {
    "Argmax": "Hardmax gives a vector with 1 at the place of the largest element",
    "Argmin": "Hardmax (-x) gives a vector with 1 at the place of the smallest element",
    "Crop": "write new ComputationNode [ operation = 'Crop' ; inputs = (x : y) ; tag = '' ]",
    "CropManual": "write new ComputationNode [ operation = 'Crop' ; inputs = (x : y) ; xOffset = 1 ; yOffset = 1 ; "
    "tag = '' ]",
    "GlobalAveragePoolingLayer": "use AveragePoolingLayer {(width : height)} with those of the image",
    "GlobalMaxPoolingLayer": "use MaxPoolingLayer {(width : height)} with those of the image",
    "LookupTable": "write E * x; or new ComputationNode [ operation = 'LookupTable' ; inputs = (E : x) ; tag = '' ]",
}
"""Functions of other releases of CNTK that the library does not have, and what to use instead."""

TEXTS = frozenset((*KINDS, *TAGS, "CHW", "HWC", "max", "average", "learnable", "constant", "shared"))
"""Texts that functions of the library take."""

LIBRARY = Path(__file__).parent / "library" / "core.bs"


@cache
def library() -> tuple[Text, RecordLiteral]:
    """Return the text of the library and its members, unparsed: those of all families, and those of `core.bs`."""
    text = joined_text([*nodes.files("library.bs"), LIBRARY], "<BrainScript library>")
    return text, library_members(text)


@cache
def taken_by_library() -> frozenset[str]:
    """Names of members that functions of the library take from the records and networks they are given."""
    return frozenset(re.findall(r"\.([A-Za-z_]\w*)", library()[0].string))


class Program(NamedTuple):
    """A network description that has been read, not evaluated.

    Attributes:
        text: its text.
        expression: what gives the network.
    """

    text: Text
    expression: Expression


def parse_network(text: Text) -> Program:
    """Read a network description: a record of members, or an expression in parentheses.

    Raises:
        ConfigError: it is none.
    """
    start = len(text.string) - len(text.string.lstrip())
    opening = text.string[start : start + 1]
    place = Place(text, start, start + 1)
    if opening not in ("{", "[", "("):
        message = "a network in BrainScript is a record, { members }, or an expression in parentheses"
        hint = 'a network that a file describes is { include "file.bs" }'
        raise error("BadSyntax", message, Place(text, start, len(text.string.rstrip())), hint)
    expression = parse_expression(text)
    if opening != "(":
        expression = New(place, "ComputationNetwork", expression)
    return Program(text, expression)


def evaluator_with(seeds: Seeds, load: Load = load_model) -> Evaluator:
    """Return an evaluator that makes nodes and networks, too; `load` reads model files."""
    classes = {**STANDARD, **NodeMaker(seeds).classes(), **ModelLoader(load).classes(), **NETWORK, **EDITING}
    unsupported = {name: kind.unsupported or "" for kind in nodes.missing() for name in kind.names}
    return evaluator_of(classes, [library()[0]], unsupported | UNSUPPORTED, TEXTS)


def root_scope(evaluator: Evaluator, names: Mapping[str, float | str]) -> Record:
    """Return the scope round a program: the library and some more names."""
    text, members = library()
    root = evaluator.evaluate(members, Record({}, None, Place(text, 0, 0), None))
    root.names.update(names)
    return root


def evaluate_network(program: Program, evaluator: Evaluator, names: Mapping[str, float | str]) -> NetworkValue:
    """Return the network that a program describes.

    Args:
        program: see `parse_network`.
        evaluator: see `evaluator_with`.
        names: `deviceId`, `traceLevel`, `precision`.

    Raises:
        ConfigError: what is wrong with the description, where, and which calls led there.
    """
    root = root_scope(evaluator, names)
    network = Delayed(program.expression, root, (None, ".network"))
    root.names["network"] = network
    place = Place(program.text, 0, len(program.text.string))
    value = evaluator.value(network, place)
    if not isinstance(value, NetworkValue):
        raise error("NoNetwork", f"the expression must give a network, not {kind_of(value)}", place)
    return value
