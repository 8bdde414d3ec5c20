"""Files that a run reads and would write over: its configuration and data under the log, an output over its input."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain

from cntkpy.cntk_config import ConfigError, ConfigValue
from cntkpy.cntk_config.base.diagnostics import Diagnostic
from cntkpy.cntk_config.base.files import is_file
from cntkpy.cntk_config.base.names import is_url
from cntkpy.commands.catalogue.section_map import TopLevel, Use
from cntkpy.commands.checks.files import BEGINNING, inputs
from cntkpy.commands.checks.scan import trains

FILE, MODEL = "outputfile", "modelpath"
"""Parameters, in lower case, that name what an action writes of a model, and the model."""


def overwritten_logs(top: TopLevel) -> Iterator[Diagnostic]:
    """Report a log, or the file that says that all is done, with the name of a file that the run reads."""
    root = top.values
    try:
        names = [value for value in (root.given("stderr"), root.given("doneFile")) if value]
        suffixed = root.timestamping
    except ConfigError:  # reported where values are looked at
        return
    written = [] if suffixed else [value for value in names if is_file(str(value))]
    if written:  # usually not: nothing else is looked at then
        read = chain.from_iterable(inputs(part) for part in top.parts if top.runs(part))
        yield from _same(written, chain(map(str, top.section.files()), map(str, read)))


def overwritten_inputs(command: Use) -> Iterator[Diagnostic]:
    """Report outputs of a command with the name of a file that it reads itself."""
    values = [
        (parameter.name.lower(), value)
        for use in command.walk()
        for parameter in use.parameters()
        if parameter.type.name.startswith("path") and parameter.name.lower().startswith(("output", MODEL))
        if (value := use.value(parameter))
    ]
    written = {name: value for name, value in values if _is_written(command, name) and is_file(str(value))}
    if not written:
        return
    yield from _same(list(written.values()), map(str, inputs(command)))
    if FILE in written:  # an outputModelPath may be that of the model: it is edited in place
        yield from _same([written[FILE]], (str(value) for name, value in values if name == MODEL))


def _is_written(command: Use, name: str) -> bool:
    """Return whether a parameter, in lower case, is the whole name of a file that a command writes."""
    return (name.startswith("output") and name != BEGINNING) or (name == MODEL and trains(command))


def _same(written: list[ConfigValue], read: Iterable[str]) -> Iterator[Diagnostic]:
    files = {os.path.realpath(name) for name in read if not is_url(name)}
    for value in written:
        if os.path.realpath(str(value)) in files:
            message = f"{value.path}: '{value}' would be written over, and the run reads it"
            yield Diagnostic("SameFile", message, value.span, "give another name")
