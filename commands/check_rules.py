"""What `check` knows about commands: their actions, readers and builders."""

from collections.abc import Iterator

from cntk_config import ConfigError, ConfigParameters
from cntk_config.diagnostics import Diagnostic, nearest
from commands.dispatch import TRAINING, find_action
from commands.root import Command, scan_commands

BUILDERS = ("SimpleNetworkBuilder", "NDLNetworkBuilder", "BrainScriptNetworkBuilder", "ExperimentalNetworkBuilder")
READERS = ("reader", "cvreader")
TEXT_READER = "CNTKTextFormatReader"


def command_problems(root: ConfigParameters) -> Iterator[Diagnostic]:
    """Look at every command as a run does before it starts, and beyond."""
    problems: list[ConfigError] = []
    try:
        commands = scan_commands(root, problems)
    except ConfigError as error:
        yield error.diagnostic
        return
    for problem in problems:
        yield problem.diagnostic
    for command in commands:
        yield from action_problems(command)
        yield from reader_problems(command.section)
        if command.trains:
            yield from builder_problems(command)
            yield from training_problems(command.section)


def action_problems(command: Command) -> Iterator[Diagnostic]:
    """Is the action known, and are its parameters of the right types?"""
    for name in command.actions:
        try:
            action = find_action(str(name), command.name, name.span)
            declared = action.declaration()
        except ConfigError as error:
            yield error.diagnostic
            continue
        if declared is not None:
            yield from declared(command.section).problems()


def reader_problems(section: ConfigParameters) -> Iterator[Diagnostic]:
    """Is the type of each reader known, and are its parameters right, as far as they are declared?"""
    from readers.registry import find_reader

    for name in READERS:
        if not section.exists(name):
            continue
        try:
            reader = section.section(name)
            find_reader(reader)
            if not reader.exists_current("deserializers") and reader.match("readerType", TEXT_READER):
                yield from text_reader_problems(reader)
        except ConfigError as error:
            yield error.diagnostic


def text_reader_problems(reader: ConfigParameters) -> Iterator[Diagnostic]:
    """Look at the parameters of the text reader and at its streams."""
    from readers.text_format.options import TextReaderParameters

    parameters = TextReaderParameters(reader)
    yield from parameters.problems()
    try:
        parameters.formats()
    except ConfigError as error:
        yield error.diagnostic


def training_problems(section: ConfigParameters) -> Iterator[Diagnostic]:
    """Do the rates and momenta contradict each other, and is the built-in network described completely?"""
    from networks.simple import SimpleNetworkBuilder
    from trainers.parameters import SGDParameters
    from trainers.schedules import Schedules

    try:
        Schedules(SGDParameters(section.section("SGD")))
        if section.exists("SimpleNetworkBuilder"):
            network = SimpleNetworkBuilder(section.section("SimpleNetworkBuilder"))
            yield from network.problems()
            network.kind()
    except ConfigError as error:
        yield error.diagnostic


def builder_problems(command: Command) -> Iterator[Diagnostic]:
    """Does a training describe its network? A name which is nearly that of a builder is a mistake."""
    section = command.section
    if any(section.exists(name) for name in BUILDERS) or not set(map(str, command.actions)) & set(TRAINING):
        return
    for name in section.names():
        if meant := nearest(name, BUILDERS):
            hint = f"did you mean '{meant}'?"
            yield section.error(name, "unknown network builder", hint, kind="UnknownBuilder").diagnostic
            return
    hint = "add a section SimpleNetworkBuilder or NDLNetworkBuilder"
    yield section.error("", "the training has no network builder", hint, kind="MissingParameter").diagnostic
