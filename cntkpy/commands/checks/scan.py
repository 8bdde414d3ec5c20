"""The commands of a configuration, looked at before the first one runs."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue
from cntkpy.cntk_config.base.diagnostics import suggestion
from cntkpy.commands.actions.train import ENTRY as TRAIN
from cntkpy.commands.actions.train import TrainParameters
from cntkpy.commands.actions.training import TrainingParameters
from cntkpy.commands.catalogue.section_map import TopLevel, Use
from cntkpy.commands.context.root import CommandParameters, RootParameters
from cntkpy.readers.entries import COMPOSITE
from cntkpy.readers.parameters import ReaderParameters
from cntkpy.readers.registry import entry_of_reader

TRAINING = TRAIN.names
"""The names of the action that trains."""


def trains(command: "Use | Command") -> bool:
    """Return whether one of the actions of a command is a training."""
    return any(action in TRAINING for action in command.actions)


class Command(NamedTuple):
    """One command: its section and the actions to run on it."""

    name: str
    section: ConfigParameters
    actions: tuple[ConfigValue, ...]

    @property
    def trains(self) -> bool:
        """True if one of the actions is a training."""
        return trains(self)


def scan_commands(
    top: TopLevel, problems: list[ConfigError] | None = None, sections: Mapping[str, ConfigParameters] = {}
) -> list[Command]:
    """Look at all commands before the first one runs, so that a broken later one stops the run at once.

    The first problem is raised; with a list, all problems are appended to it instead, and the commands that can be run
    are returned. `sections` has those of commands that have been read before.
    """
    commands: list[Command] = []
    reported: set[str] = set()

    def note(error: ConfigError) -> None:
        if problems is None:
            raise error
        if str(error) not in reported:
            reported.add(str(error))
            problems.append(error)

    root = top.section
    for name in top.command_names():
        try:
            commands.append(_read_command(root, name, sections.get(name)))
        except ConfigError as error:
            note(error)
    for check in (_check_truncated, _check_training):
        for command in commands:
            for problem in check(root, command):
                note(problem)
    return commands


def total_epochs(commands: list[Command]) -> list[tuple[Command, int]]:
    """Return the commands that train, each with its number of epochs."""
    return [(command, _max_epochs(command.section)) for command in commands if command.trains]


def _read_command(root: ConfigParameters, name: ConfigValue, section: ConfigParameters | None) -> Command:
    if section is None and not root.exists(name):

        def hint() -> str | None:
            if name.span is None:  # nobody has written it
                there = [candidate for candidate, section in root.inner() if CommandParameters(section).given("action")]
                return f"no command is given, the default is {name}: add command = {':'.join(there) or 'SECTION'}"
            return suggestion(name, [candidate for candidate, _ in root.inner()])

        message = f"{root.path}:{name} is missing, the section of a command"
        raise ConfigError("MissingParameter", message, span=name.span, hint=hint)
    section = root.section(name) if section is None else section
    return Command(str(name), section, tuple(CommandParameters(section).action))


def _check_truncated(root: ConfigParameters, command: Command) -> Iterator[ConfigError]:
    """Check that trainer and reader agree on `truncated` where `minibatchSize` is the length of the pieces.

    The trainer converts rates per minibatch with it. A composite reader has `truncationLength`, and its minibatchSize
    counts samples, as that of whole sequences does.
    """
    if RootParameters.truncated.find(root) or not command.trains:
        return
    p, truncated = TrainingParameters(command.section), ReaderParameters.truncated
    try:
        trainer, reader = p.sgd.config, p.reader
        if truncated.stands_in(trainer) or not truncated.stands_in(reader) or not truncated.read(reader):
            return
    except ConfigError as error:
        yield error
        return
    entry = entry_of_reader(reader)
    if entry is None or entry.name != COMPOSITE:
        value = truncated.value(reader)
        message = "truncated is given for the reader but not for SGD, which converts rates per minibatch with it"
        hint = "move it to the top level of the configuration"
        yield ConfigError("MissingParameter", message, span=value.span if value else None, hint=hint)


def _check_training(root: ConfigParameters, command: Command) -> Iterator[ConfigError]:
    if not command.trains:
        return
    for read in (model_path, _max_epochs):
        try:
            read(command.section)
        except ConfigError as error:
            yield error


def model_path(section: ConfigParameters) -> str:
    """Return the model that a training makes."""
    return str(TrainParameters(section).model_path)


def trained_model(section: ConfigParameters) -> str:
    """Return the file in which a training leaves its network: `modelPath` may also be inside SGD."""
    return str(TrainingParameters(section).sgd.model_path)


def _max_epochs(section: ConfigParameters) -> int:
    return TrainingParameters(section).sgd.max_epochs
