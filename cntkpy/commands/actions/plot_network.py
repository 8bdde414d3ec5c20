"""`action = plot`: a picture of a network, as text for Graphviz and, where its program `dot` is installed, drawn.

`renderCmd` is not run as a command: a configuration is data. It is read, and if it is a call of `dot` of the usual form
- `dot -Tpng <IN> -o<OUT>` - then `dot` is run with that format; anything else is an error that says so.
"""

from __future__ import annotations

import logging
import re
import shlex
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.cntk_config.declare import PATH, TEXT, Declared, Parameter
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.networks_and_readers import load

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext

log = logging.getLogger("cntkpy.commands")

ARGUMENT = re.compile(r"-T(?P<form>[a-z]+)|<IN>|-o<OUT>|<OUT>|-o|-T")


ENTRY = Entry(
    "action",
    ("plot",),
    parameters="cntkpy.commands.actions.plot_network:PlotParameters",
    factory="cntkpy.commands.actions.plot_network:plot",
    traits=frozenset({"without JAX"}),
    example="plot = [ action = plot ; modelPath = m ; outputDotFile = net.dot ]",
)


class PlotParameters(Declared):
    """`action=plot`: writes a network as text for Graphviz, and as a picture."""

    model_path = Parameter("modelPath", PATH, help="The model file.")
    dot_file = Parameter("outputDotFile", PATH, default=None, help="The text for Graphviz; `modelPath.dot`.")
    picture = Parameter(
        "outputFile", PATH, default=None, help="The picture (.svg, .png, .pdf); needs Graphviz. outputDotFile.svg."
    )
    command = Parameter(
        "renderCmd", TEXT, default=None, help="Only `dot -Tformat <IN> -o<OUT>`, for a format unlike `outputFile`'s."
    )


def plot(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = PlotParameters(section)
    form = _format(p)
    from cntkpy.networks.graph.plot import FORMATS, dot_text, graphviz, render

    picture = str(p.picture) if p.picture else None
    form = form or (PurePath(picture).suffix[1:].lower() if picture else None)
    if form is not None and form not in FORMATS:
        name = "renderCmd" if p.command else "outputFile"
        raise p.error(name, f"'{form}' is not a picture format", f"the formats are {', '.join(FORMATS)}")
    path = str(p.model_path)
    network = load(path, context)
    dot_file = str(p.dot_file) if p.dot_file else f"{path}.dot"
    try:
        with atomic_write(dot_file) as file:
            file.write(dot_text(network, Path(path).name).encode())
    except OSError as problem:
        raise UserError("CannotWrite", f"cannot write {dot_file}: {problem.strerror or problem}") from None
    log.info("Network written as Graphviz text to %s", dot_file)
    if picture is None and graphviz() is None:
        log.info("No picture is drawn: Graphviz' program 'dot' is not installed.")
        return
    picture = picture or f"{dot_file.removesuffix('.dot')}.svg"
    render(dot_file, picture, form or "svg")
    log.info("Picture written to %s", picture)


def _format(p: PlotParameters) -> str | None:
    """Return the picture format that `renderCmd` asks for; an error if it is not a plain call of `dot`."""
    if not p.command:
        return None
    hint = "leave renderCmd out: the format is the ending of outputFile; or draw the file outputDotFile yourself"
    try:
        program, *arguments = shlex.split(str(p.command))
    except ValueError:
        program, arguments = "", []
    # dot's own name, possibly with a folder in front, which does not matter: the installed one is run
    known = re.split(r"[\\/]", program)[-1].lower() in ("dot", "dot.exe")
    matches = [ARGUMENT.fullmatch(argument) for argument in arguments]
    form: str | None = None
    for index, (argument, match) in enumerate(zip(arguments, matches, strict=True)):
        if match is not None and match["form"]:
            form = match["form"]
        elif argument == "-T" and index + 1 < len(arguments) and re.fullmatch("[a-z]+", arguments[index + 1]):
            form, matches[index + 1] = arguments[index + 1], match
    if not known or not all(matches):
        message = "only a call of Graphviz' dot is supported: dot -Tsvg <IN> -o<OUT>; no other command is run"
        raise p.error("renderCmd", message, hint, kind="Unsupported")
    if not p.picture:
        raise p.error("renderCmd", "renderCmd needs outputFile, the picture", "add outputFile=network.svg")
    return form
