"""Rules of `check` for commands: their actions, readers, builders and schedules."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue
from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.cntk_config.base.diagnostics import Diagnostic, nearest
from cntkpy.cntk_config.base.extras import missing
from cntkpy.cntk_config.declare import Declared
from cntkpy.commands.actions.train import TrainParameters, starts_from_model
from cntkpy.commands.catalogue.dispatch import BUILDS, EVALUATES, has_trait, names_of
from cntkpy.commands.catalogue.section_map import TopLevel, Use
from cntkpy.commands.checks.findings import diagnostics_of
from cntkpy.commands.checks.scan import TRAINING, Command, scan_commands
from cntkpy.networks.builders.parameters import BUILDERS, builder_of, builders_of, is_given
from cntkpy.readers.entries import READER, WRITER
from cntkpy.readers.parameters import WriterParameters, built_in

if TYPE_CHECKING:
    from cntkpy.trainers.parameters.sgd import SGDParameters

WRITING = names_of("write")
"""The action that has a writer."""
BINARY = "BinaryWriter"
NODE_SECTIONS = {
    "binarywriter": "wfile=FILE ; wrecords=COUNT ; NODE=[sectionType=Data ; dim=...], or another writerType",
    "lmsequencewriter": "NODE=[file=... ; token=...]",
    "lusequencewriter": "NODE=[file=... ; token=...]",
}
"""Parameters that a writer needs, by its type in lower case; others need `dim` and `scpFile`."""
OF_VALUES = ("CK020", "CK021", "CK022", "CK023", "CK024")
"""Kinds of errors that concern a value by itself."""


def command_problems(top: TopLevel) -> Iterator[Diagnostic]:
    """Look at every command as a run does before it starts, and beyond."""
    problems: list[ConfigError] = []
    uses = {use.command: use for use in top.parts}
    try:
        commands = scan_commands(top, problems, {name: use.section for name, use in uses.items()})
    except ConfigError as error:
        yield error.diagnostic
        return
    unused = {command.name for command in commands if command.name not in uses}
    here = [
        problem
        for problem in problems
        if problem.message.removeprefix(f"{top.section.path}:").partition(":")[0] not in unused
    ]
    yield from diagnostics_of(here)
    for command in commands:
        use = uses.get(command.name)
        if use is None:
            continue  # it is not looked at
        yield from diagnostics_of(use.unknown)
        for inside in use.walk():
            yield from value_problems(inside)
            yield from idle_sections(inside)
        yield from reader_problems(use)
        yield from writer_problems(use)
        if command.trains:
            yield from builder_problems(command)
            yield from training_problems(command.section, precision_of(top.section))
        yield from untrained_network(command)


def precision_of(root: ConfigParameters) -> str:
    """Return the precision of networks, or the default if it cannot be read: the error is reported elsewhere."""
    try:
        return str(root("precision", "float"))
    except ConfigError:
        return "float"


def idle_problems(top: TopLevel) -> Iterator[Diagnostic]:
    """Yield warnings of actions and values in commands that `command` does not list: unknown, or not of their type.

    Nothing is missing in such a command: `command=NAME` on the command line may come with more.
    """
    idle = [] if top.error else [use for use in top.parts if not top.runs(use)]
    yield from (
        replace(error.diagnostic, severity="warning") for use in idle for error in use.unknown if error.hint is not None
    )  # others may be for another program
    for use in (inside for command in idle for inside in command.walk()):
        for parameter in use.parameters():
            if parameter.type.is_section or not parameter.stands_in(use.section):
                continue
            try:
                parameter.read(use.section)
            except ConfigError as error:
                if error.diagnostic.rule.code in OF_VALUES:
                    yield replace(error.diagnostic, severity="warning")


def value_problems(use: Use) -> Iterator[Diagnostic]:
    """Check that the values of a section have the right types, and that all required ones are there."""
    builds = any(has_trait(action, BUILDS) for action in use.actions) and any(
        is_given(use.section, name) for name in BUILDERS
    )
    for parameter in use.parameters():
        if builds and parameter.name == "modelPath" and not use.section.exists("modelPath"):
            continue  # the network is built, no model is loaded
        if not parameter.required and parameter.find(use.section) is None:
            continue  # a default is never wrong
        try:
            value = parameter.read(use.section)
            if parameter.type.per_epoch and parameter.default is not None and not value:
                _ = value[0]  # its error
        except ConfigError as error:
            yield error.diagnostic


def idle_sections(use: Use) -> Iterator[Diagnostic]:
    """Yield warnings of sections that do nothing as they stand."""
    for declared in use.declared:
        section = declared(use.section)
        try:
            for name, message, hint in section.idle():
                value = _given(section, name)
                span = value.span if value is not None else use.section.span
                path = value.path if value is not None else use.section.path
                yield Diagnostic("IgnoredParameter", f"{path}: {message}", span, hint, severity="warning")
        except ConfigError:
            continue  # found where values are looked at


def _given(section: Declared, path: str) -> ConfigValue | None:
    """Return the value of a parameter as the user gave it; of `SGD/momentum` that of a section inside."""
    name, _, inner_path = path.partition("/")
    parameter = section.parameter(name) if inner_path else None
    return section.given(name) if parameter is None else _given(parameter.read(section.config), inner_path)


def reader_problems(use: Use) -> Iterator[Diagnostic]:
    """Check that types of readers, deserializers and writers are known, and that their sections agree."""
    from cntkpy.readers.registry import find_deserializer, find_reader
    from cntkpy.readers.writer import find_writer

    finds = {"reader": find_reader, "cvReader": find_reader, "deserializer": find_deserializer, "writer": find_writer}
    for inside in use.walk():
        try:
            if inside.role in finds:
                finds[inside.role](inside.section)
            if inside.role in READER.sections and _keeps_cache(inside):
                find_writer(inside.section)
            for declared in inside.declared:
                declared(inside.section).check_together()
        except ConfigError as error:
            yield error.diagnostic


def writer_problems(command: Use) -> Iterator[Diagnostic]:
    """Check that a writer has a file, and a section for each node that is written.

    Args:
        command: a command; of others than those that write there are no problems.
    """
    use = command.part("writer")
    if use is None or use.open or not set(command.actions) & set(WRITING):
        return
    kind = WriterParameters.writer_type.read(use.section)
    name = str(kind)
    if built_in(WRITER, kind, WriterParameters.module.read(use.section)) is None:
        return  # a writer of a package says itself what it needs
    parts = [part for part in use.walk() if part.role.partition(" ")[0] in ("node", "written")]
    nodes = {str(_node_of(part)).lower() for part in parts}
    if not parts:
        hint = f"add {NODE_SECTIONS.get(name.lower(), 'NODE=[dim=... ; scpFile=...]')}"
        deserializers = use.section.find("deserializers")
        if deserializers is not None:
            hint = f"deserializers belong to a reader; {hint}"
        message = f"{use.section.path}: the {name} has no section of a node to write"
        yield Diagnostic(
            "MissingParameter", message, deserializers.span if deserializers is not None else use.section.span, hint
        )
        return
    if name.lower() == BINARY.lower() and missing("data") is None:
        import numpy as np

        from cntkpy.readers.formats.binary.writer import plan_files

        try:
            plan_files(use.section, np.dtype(np.float32))
        except ConfigError as error:
            yield error.diagnostic
            return
    written = command.parameter("outputNodeNames")
    for node in cast("list[ConfigValue]", written.read(command.section)) if written is not None else []:
        if str(node).lower() not in nodes:
            message = f"{use.section.path}: the writer has no section for the node '{node}'"
            there = f"its sections are of {', '.join(sorted(map(_node_of, parts)))}"
            hint = f"add a section {node}=[...], as the others, or correct outputNodeNames; {there}"
            yield Diagnostic("MissingParameter", message, use.section.span, hint)


def _node_of(part: Use) -> str:
    """Return the node that a section of a writer is about."""
    named = part.parameter("nodeName")
    return str((named.read(part.section) if named is not None else None) or part.role.partition(" ")[2])


def _keeps_cache(use: Use) -> bool:
    """Return whether a reader writes a cache: it has a writer's type."""
    written = WriterParameters.writer_type
    return use.parameter(written.name) is not None and written.stands_in(use.section)


def training_problems(section: ConfigParameters, precision: str) -> Iterator[Diagnostic]:
    """Report rates and momenta that contradict each other."""
    from cntkpy.trainers.parameters.sgd import SGDParameters
    from cntkpy.trainers.schedules.checks import check_parameters

    try:
        sgd = SGDParameters(section.section("SGD"))
        yield from long_schedules(sgd)
        check_parameters(sgd, precision)
    except ConfigError as error:
        yield error.diagnostic


def long_schedules(sgd: SGDParameters) -> Iterator[Diagnostic]:
    """Report lists per epoch that have more values than there are epochs; those at the end are never used."""
    epochs = sgd.max_epochs
    for parameter in sgd.parameters():
        value = sgd.given(parameter.name)
        if value is None or not parameter.type.per_epoch:
            continue
        listed = parameter.read(sgd.config)
        count = len(cast("PerEpoch[Any]", listed)) if isinstance(listed, PerEpoch) else 0
        if count > epochs > 0:
            message = f"{value.path}: {count} values for {epochs} epoch{'s' * (epochs != 1)}"
            surplus = "the last one is" if count - epochs == 1 else f"the last {count - epochs} are"
            yield Diagnostic("LongSchedule", message, value.span, f"{surplus} never used")


def builder_problems(command: Command) -> Iterator[Diagnostic]:
    """Check that a training describes its network, and only once; report names like that of a builder."""
    section = command.section
    present = [builder.name for builder in builders_of(section)]
    used = builder_of(section)
    if used is not None and len(present) > 1:
        place = used.value(section)
        where = f" of {place.span}" if place is not None and place.span is not None else ""
        for name in present:
            second = section.find(name)
            if name != used.name and second is not None:
                message = f"command {command.name}: the {used.name}{where} is used, not this {name}"
                hint = f"keep one of them; {name}=default removes this one"
                yield Diagnostic("SeveralBuilders", message, second.span, hint, severity="warning")
    if not command.trains:
        return
    try:
        starts_from_model(TrainParameters(section))
    except ConfigError as error:
        yield error.diagnostic
    if present or section.exists("initialModel"):
        return
    names = [name for name in section.names() if not section.is_removed(name)]
    for name in filter(None, (nearest(builder, names) for builder in BUILDERS)):
        if meant := nearest(name, BUILDERS):
            hint = f"did you mean '{meant}'?"
            entry = section.definition(name)
            span = entry.name_span if entry is not None else section.span
            yield Diagnostic("UnknownBuilder", f"{section.path}:{name}: unknown network builder", span, hint)
            return
    hint = "add a section SimpleNetworkBuilder or NDLNetworkBuilder, or initialModel"
    yield section.error("", "the training has no network builder", hint, kind="MissingParameter").diagnostic


def untrained_network(command: Command) -> Iterator[Diagnostic]:
    """Report a new network is evaluated: a builder is visible, and no action before has trained the network."""
    section = command.section
    earlier = itertools.takewhile(lambda action: action not in TRAINING, command.actions)
    action = next((action for action in earlier if has_trait(str(action), EVALUATES)), None)
    builder = builder_of(section) if action is not None else None
    try:
        if action is None or builder is None or _loads(builder.value(section)):
            return
    except ConfigError:
        return  # found where values are looked at
    span, is_local = action.span, section.exists_current(builder.name)
    if not is_local and section.exists("modelPath"):
        problem = f"a new network is built by the {builder.name} further out; no model is loaded"
        hint = f"move {builder.name} into the command that trains"
        yield Diagnostic("InheritedBuilder", f"command {command.name}: {problem}", span, hint, severity="warning")
        return
    message = f"command {command.name}: {action} evaluates a new, untrained network, built by the {builder.name}"
    hint = f"remove {builder.name} and give modelPath; or train first: action = train:{action}"
    yield Diagnostic("UntrainedNetwork", message, span, hint, severity="warning")


def _loads(builder: ConfigValue | None) -> bool:
    """Return whether a builder begins with the network of a model file."""
    return builder is not None and "Network.Load" in str(builder)
