"""The trackers that a run asks for: in its section `tracking`, by `--track`, by `tensorBoardLogDir` of a training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Span
from cntkpy.cntk_config.base.names import shareable
from cntkpy.commands.catalogue.section_map import TopLevel
from cntkpy.commands.tracking.handler import TrackingHandler
from cntkpy.commands.tracking.messages import Messages
from cntkpy.commands.tracking.tracker import Place, find_tracker
from cntkpy.commands.words import TRACK
from cntkpy.trainers.parameters.sgd import SGDParameters


def trackers(top: TopLevel, words: Sequence[str], files: Sequence[str]) -> list[TrackingHandler]:
    """Handlers of the log, which send events.

    Args:
        top: the top level of the configuration.
        words: of the command line.
        files: what the run writes besides models.

    Raises:
        ConfigError: a tracker is not there.
    """
    wanted = [*_of_section(top), *_of_words(words), *_of_trainings(top)]
    result = [(place, find_tracker(place, span), command) for place, command, span in wanted]
    return [TrackingHandler(place.type, make, Messages(files, command)) for place, make, command in result]


Wanted = tuple[Place, str, Span | None]
"""A place, the only command that is tracked there, and where it is asked for."""


def _of_section(top: TopLevel) -> Iterator[Wanted]:
    p = top.values.tracking
    if p is None:
        return
    for word in p.type:
        name = str(word)
        target = str(p.folder) if name.lower() == "tensorboard" else str(p.uri)
        place = Place(name, target, str(p.experiment), str(p.name), shareable(_texts(p.tags)), _texts(p.options))
        yield place, "", word.span


def _texts(section: ConfigParameters | None) -> dict[str, str]:
    return {} if section is None else {name: str(section(name)) for name in section.names()}


def _of_words(words: Sequence[str]) -> Iterator[Wanted]:
    for word in words:
        if word.startswith(TRACK + "="):
            name, _, target = word.removeprefix(TRACK + "=").partition(":")
            yield Place(name, target), "", None


def _of_trainings(top: TopLevel) -> Iterator[Wanted]:
    for command in filter(top.runs, top.parts):
        for use in command.parts:
            if SGDParameters not in use.declared:
                continue
            try:
                folder = SGDParameters.event_folder.value(use.section)
            except ConfigError:
                continue  # found when the commands are looked at
            if folder:
                yield Place("tensorboard", str(folder)), command.command, folder.span
