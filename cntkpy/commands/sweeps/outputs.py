"""Move the outputs of a configuration's commands into the folder of a trial."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.export import is_set, nodes
from cntkpy.commands.catalogue.section_map import Use, section_map
from cntkpy.commands.checks.files import OUTPUTS
from cntkpy.commands.checks.models import runs_script
from cntkpy.commands.checks.scan import trains
from cntkpy.commands.context.root import RootParameters
from cntkpy.commands.words import TRACK

TENSORBOARD = "tensorboard"
EVENT_FILES = "tensorboardlogdir"
"""A folder that a training writes to."""
FORBIDDEN = '"$\n\r'
"""Characters that a quoted path of the configuration language cannot have."""


def moving_words(root: ConfigParameters, folder: Path) -> list[str]:
    """Words that move all outputs into a folder, where they keep their names and their places to one another.

    A value elsewhere that names an output, such as the `modelPath` of a test, moves with it.

    Args:
        root: the configuration.
        folder: the folder of a trial, absolute.

    Raises:
        UserError: the folder has a name that no word can have.
    """
    if any(char in FORBIDDEN for char in str(folder)):
        message = f"the folder {str(folder)!r} has a character in its name that a configuration cannot quote"
        raise UserError("BadPath", message, hint="give another folder with --out")
    tracked = _tracking_words(root, folder.name)
    written = list(dict.fromkeys(map(os.path.normpath, _outputs(root))))
    if not written:
        return tracked
    parents = [str(Path(path).absolute().parent) for path in written]
    above = os.path.commonpath(parents)
    targets = {pair: folder / os.path.relpath(Path(pair).absolute(), above) for pair in written}
    return [*tracked, *(_word(name, text, targets) for name, text in _values(root) if _output_of(text, targets))]


def _tracking_words(root: ConfigParameters, trial: str) -> list[str]:
    """Return the word that gives the events for TensorBoard of a trial a folder of their own in the common one (U9)."""
    p = RootParameters(root).tracking
    if p is None or TENSORBOARD not in (str(word).lower() for word in p.type):
        return []
    folder = str(p.folder)
    return [f'tracking=[folder="{folder}/{trial}"]'] if not any(char in FORBIDDEN for char in folder) else []


def tracking_word(place: str, trial: str) -> str:
    """Return the word that tracks a trial: in a folder of its own where the place is one of TensorBoard.

    Args:
        place: `TYPE:TARGET`, as `--track` has it.
        trial: the name of the folder of the trial.
    """
    kind, _, target = place.partition(":")
    return f"{TRACK}={place}/{trial}" if kind.lower() == TENSORBOARD and target else f"{TRACK}={place}"


OUTSIDE = "'{}' would be written by every trial"
OUTSIDE_HINT = "write its path as a value of its own, so that the sweep can move it into the trial's folder"


def outside(root: ConfigParameters, folder: Path) -> list[str]:
    """Return the outputs that are not in a folder."""
    written = dict.fromkeys(_outputs(root))
    return [pair for pair in written if folder not in Path(os.path.normpath(Path(pair).absolute())).parents]


def scripts(root: ConfigParameters) -> list[str]:
    """Return the commands that run a script, whose files are not known."""
    return [use.command for use in _listed(root) if runs_script(use)]


def _outputs(root: ConfigParameters) -> Iterator[str]:
    """Return the files that the listed commands write, as their parameters name them."""
    if done := RootParameters.done_file.value(root):
        yield str(done)
    for command in _listed(root):
        outputs = (*OUTPUTS, "modelpath") if trains(command) else OUTPUTS
        for use in command.walk():
            for parameter in use.parameters():
                name = parameter.name.lower()
                is_output = parameter.type.name.startswith("path") and name in outputs
                if (is_output or name == EVENT_FILES) and (value := use.value(parameter)):
                    yield str(value)


def _listed(root: ConfigParameters) -> list[Use]:
    top = section_map(root)
    if top.error is not None:
        raise top.error
    return list(filter(top.runs, top.parts))


def _values(config: ConfigParameters, above: str = "") -> Iterator[tuple[str, str]]:
    """Return all values of a configuration, by their full names; sections in `{ }` are opened, too."""
    for node in nodes(config):
        name = above + node.name
        section = node.section
        if section is None and node.error is None and node.value.startswith("{") and is_set(node.value):
            section = ConfigParameters.from_value(node.value)
        if section is not None:
            yield from _values(section, f"{name}:")
        elif node.error is None:
            yield name, str(node.value)


def _output_of(text: str, targets: dict[str, Path]) -> str | None:
    """Return the output that a value names, or whose file of an epoch it names."""
    name = os.path.normpath(text) if text else ""
    return next((target for target in targets if name == target or name.startswith(f"{target}.")), None)


def _word(name: str, text: str, targets: dict[str, Path]) -> str:
    """Return the word that gives a value its new place."""
    output_name = _output_of(text, targets) or ""
    *sections, last = name.split(":")
    word = f'{last}="{targets[output_name]}{os.path.normpath(text)[len(output_name) :]}"'
    for section in reversed(sections):
        word = f"{section}=[{word}]"
    return word
