"""Networks of a configuration, built without values: names, options, shapes, and the reader's streams.

Only what is needed is imported: NDL for a command that uses it. Nothing is computed, no start value is drawn.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span, UserError, nearest, suggestion
from cntkpy.commands.actions.train import TrainParameters, starts_from_model
from cntkpy.commands.catalogue.dispatch import EVALUATES, has_trait, names_of
from cntkpy.commands.catalogue.section_map import Use
from cntkpy.commands.checks.criteria import OVER_CLASSES, idle_criteria, one_class, swapped_operands
from cntkpy.commands.checks.files import windows_output
from cntkpy.commands.checks.models import Models, ModelToCome
from cntkpy.commands.checks.outlines import NODES, READING, Outlines, evaluated, simple_outline
from cntkpy.commands.checks.scan import TRAINING
from cntkpy.commands.checks.streams import Streams, missing_or_wrong, reader_streams, unread
from cntkpy.commands.context.root import listed_commands
from cntkpy.networks.builders.parameters import builder_of

if TYPE_CHECKING:
    from cntkpy.networks.builders.brainscript.language.syntax import RecordLiteral
    from cntkpy.networks.builders.ndl.front_end import Session
    from cntkpy.networks.builders.simple.parameters import SimpleNetworkBuilder
    from cntkpy.networks.graph.network import Network, Node, ValidatedNetwork
    from cntkpy.networks.mel.parse import Statement
    from cntkpy.networks.mel.script import Editor

    Computes = Callable[[Network | ValidatedNetwork], list[Node]]
    """The nodes that a command computes of its network."""


def network_problems(
    root: ConfigParameters,
    top: Use,
    *,
    strict: bool = True,
    here: bool = False,
    looks_at: Callable[[Use], bool] = lambda use: True,
    each: Callable[[Network], object] = lambda network: None,
) -> Iterator[Diagnostic]:
    """Look at the networks of all commands.

    Without `strict` as a run does: options that CNTK ignores are none of the findings. Where files are `here`, a model
    that a listed command loads must be there. A command that `looks_at` leaves out may write models nevertheless.
    `each` gets the networks that builders make.
    """
    models, outlines = Models(here), Outlines()
    is_listed, asked = _is_listed(root), _asked_for(top)
    for use in top.parts:
        if not is_listed(use):
            continue
        network: Network | None = None
        if looks_at(use):
            network = yield from _problems(use, models, strict, asked)
            if set(use.actions) & set(TRAINING):
                if network is not None:
                    yield from swapped_operands(network)
                    yield from idle_criteria(network)
                yield from _idle_settings(use, network) if strict else ()
            yield from outlines.beside(use, network, models)
        models.pass_command(use, network or (_outline_to_edit(use, top) if strict else None))
        if network is not None:
            each(network)
    for use in top.parts if strict else ():
        if not is_listed(use) and looks_at(use):
            yield from _in_idle_command(_problems(use, models, strict, asked))


def _outline_to_edit(use: Use, top: Use) -> Network | None:
    """The network of a SimpleNetworkBuilder that is trained, if a script may edit it; otherwise nobody looks at it."""
    builder = builder_of(use.section)
    trains = bool(set(use.actions) & set(TRAINING)) and _initial(use.section) is None
    if not trains or builder is None or builder.name != "SimpleNetworkBuilder":
        return None
    if not any("edit" in one.actions for one in top.parts):
        return None
    with suppress(UserError):  # found by the command itself
        return simple_outline(use.section.section("SimpleNetworkBuilder"))
    return None


def _in_idle_command(problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Warnings of what is wrong with a network by itself: `command=NAME` on the command line may come with more."""
    for one in problems:
        if (one.rule.code in OF_NETWORKS and one.kind != "UnknownModel") or one.kind == "FileNotFound":
            yield replace(one, severity="warning")


def _idle_settings(use: Use, network: Network | None) -> Iterator[Diagnostic]:
    """Rates of the trainer for nodes that the network does not have; the run warns of them by itself."""
    from cntkpy.trainers.rules.idle import idle_settings

    try:
        sgd, builder = TrainParameters(use.section).sgd, builder_of(use.section)
        simple = network is None and builder is not None and builder.name == "SimpleNetworkBuilder"
        if simple and sgd.given("dropoutRate") is not None and _initial(use.section) is None:
            made = simple_outline(use.section.section("SimpleNetworkBuilder"))
        else:
            made = network
        for one in idle_settings(sgd, made) if made is not None else ():
            add = "addDropoutNodes = true makes some" if simple else f"add a {one.operation} node"
            message = f"{one.value.path}: it has no effect, the network has no {one.operation} node"
            yield Diagnostic("IgnoredParameter", message, one.value.span, f"{add}, or remove it", severity="warning")
    except UserError:
        return  # found where values are looked at


def input_axes(root: ConfigParameters, top: Use) -> dict[str, str]:
    """The time axes of the inputs of the networks that commands build, by their names in lower case.

    Inputs on the default axis are left out.
    """
    from cntkpy.networks.graph.axes import DEFAULT

    found: dict[str, str] = {}
    networks: list[Network] = []
    deque(network_problems(root, top, looks_at=_is_listed(root), each=networks.append), maxlen=0)
    for node in (node for network in networks for node in network.nodes.values()):
        if node.kind.layout == "always" and node.axis not in (None, DEFAULT):
            found.setdefault(node.name.lower(), node.axis)
    return found


def _asked_for(top: Use) -> set[str]:
    """The nodes that commands name, whatever network they mean."""
    try:
        named = [(one, use) for use in top.parts for one in filter(None, map(use.parameter, NODES))]
        return {str(word) for one, use in named for word in cast("list[ConfigValue]", one.read(use.section) or [])}
    except UserError:
        return set()  # found where values are looked at


def _problems(use: Use, models: Models, strict: bool, asked: set[str]) -> Generator[Diagnostic, None, Network | None]:
    """Look at the network of a command; gives the network that its builder makes, if that is known."""
    section = use.section
    if "edit" in use.actions:
        yield from _editing(section, models, strict)
    trains = bool(set(use.actions) & set(TRAINING))
    reader = use.part("reader")
    streams = reader_streams(reader) if reader else None
    if trains and (value := _initial(section)) is not None:
        return (yield from _loaded(value, section, streams, models))
    builder = builder_of(section)
    loads = any(has_trait(one, EVALUATES) or one in LOADING for one in use.actions)
    if loads and builder is None and not trains:
        yield from _missing_model(section, models)
    brain_script = builder is not None and builder.name in BRAIN_SCRIPTS and section.exists_current(builder.name)
    if not brain_script and not any(one.role in NETWORKS for one in use.parts):
        return None
    name = builder.name if builder is not None else ""
    computes = partial(evaluated, use) if not trains and set(use.actions) <= READING else None
    if name == "SimpleNetworkBuilder":
        yield from _simple(section, streams, trains, computes)
    elif name == "NDLNetworkBuilder":
        return (yield from _ndl(section, streams, trains, computes, models, strict))
    elif brain_script and builder is not None:
        return (yield from _brain_script(section, builder.name, streams, trains, computes, models, strict, asked))
    return None


NEAR = 0.85
"""How alike the name of a member and that of a group have to be, which any name may resemble slightly."""
LOADING = frozenset({*names_of("dumpNode"), *names_of("SVD")})
"""Actions that load a model, and do not compute it."""
OF_NETWORKS = ("CK050", "CK051", "CK052", "CK053", "CK055", "CK056")
"""Statements, names, arguments, shapes, and the reader's streams."""
EFFECTS = ("Print", "Debug", "Fail")
"""Functions that are called for what they do, not for a value."""
NETWORKS = ("SimpleNetworkBuilder", "NDLNetworkBuilder")
BRAIN_SCRIPTS = ("BrainScriptNetworkBuilder", "ExperimentalNetworkBuilder")


def _is_listed(root: ConfigParameters) -> Callable[[Use], bool]:
    """Tells the commands that are to run; none where they cannot be read."""
    listed = set[str]()
    with suppress(ConfigError):
        listed = listed_commands(root)
    return lambda use: use.command.lower() in listed


def _simple(
    section: ConfigParameters, streams: Streams | None, trains: bool, computes: Computes | None
) -> Iterator[Diagnostic]:
    """Names and shapes of the network; the first and last layer of a feed-forward one against the data."""
    from cntkpy.networks.builders.simple.parameters import SimpleNetworkBuilder

    try:
        builder = SimpleNetworkBuilder(section.section("SimpleNetworkBuilder"))
        is_plain = builder.kind() == "SIMPLENET"
        if not is_plain or (trains and _names_criteria(section)):
            network = simple_outline(builder.config)
            if trains:
                _find_criteria(network, section)
            if not is_plain and streams is not None:
                found = missing_or_wrong(network, streams, trains, computed=computes and computes(network))
                yield from (replace(one, span=one.span or builder.config.span) for one in found)
        sizes = builder.layer_sizes
        if trains and is_plain and sizes and sizes[-1] == 1:
            yield from _one_class(builder)
        if not is_plain or len(sizes) < 2 or streams is None:
            return
    except UserError as error:
        found = error.diagnostic
        yield Diagnostic(found.kind, found.message, found.span or section.span, found.hint, found.notes)
        return
    if trains:
        yield from _missing_streams(builder.config, streams)
    value = builder.given("layerSizes")
    ends = (("features", sizes[0], "first", 0), ("labels", sizes[-1], "last", -1))
    for name, size, which, index in ends:
        stream = streams.get(name)
        if stream is None or stream.dim in (None, size) or value is None:
            continue
        try:
            span = value.as_array()[index].span
        except ConfigError:
            span = value.span
        message = f"the {which} layer has {size} elements, but the stream '{stream.name}' has {stream.dim}"
        hint = stream.advice(size) or f"the dimension of the stream is given at {stream.span}"
        yield Diagnostic("DimensionMismatch", message, span, hint)


def _one_class(builder: SimpleNetworkBuilder) -> Iterator[Diagnostic]:
    """Criteria of classes over the single element of the last layer."""
    from cntkpy.networks.builders.simple.parameters import find_criterion

    for name in ("trainingCriterion", "evalCriterion"):
        value = builder.given(name)
        operation, _ = find_criterion(name, str(value)) if value is not None else ("", "")
        if value is not None and operation in OVER_CLASSES:
            yield one_class(operation, value.span)


def _missing_streams(section: ConfigParameters, streams: Streams) -> Iterator[Diagnostic]:
    """The streams that a feed-forward network is trained with, and that the reader does not deliver."""
    names = [one.name for one in streams.values()]
    for wanted in ("features", "labels"):
        if wanted not in streams:
            hint = suggestion(wanted, names) or f"the reader delivers {', '.join(names)}; add '{wanted}' to its section"
            message = f"the reader has no stream for the input '{wanted}' of the SimpleNetworkBuilder"
            yield Diagnostic("MissingStream", message, section.span, hint)


def _names_criteria(section: ConfigParameters) -> bool:
    """Whether the trainer names its criteria."""
    sgd = TrainParameters(section).sgd
    return bool(sgd.train_criterion or sgd.eval_criterion)


def _ndl(
    section: ConfigParameters,
    streams: Streams | None,
    trains: bool,
    computes: Computes | None,
    models: Models,
    strict: bool,
) -> Generator[Diagnostic, None, Network | None]:
    from cntkpy.networks.builders.ndl.front_end import Session, find_program
    from cntkpy.networks.graph.network import Network

    network = Network("float", values=False)
    builder = section.section("NDLNetworkBuilder")
    try:
        program = find_program(builder)
        session = Session(network, strict=strict)
        try:
            session.run(program)
        finally:
            # an option that a function does not have is passed over by the run, as by CNTK
            for one in session.warnings:
                yield one if one.kind == "IgnoredParameter" else replace(one, severity="warning")
        network.validate()
        if trains:
            _find_criteria(network, section)
    except UserError as error:
        yield _of_file(error, builder.span, models)
        return None
    if strict:
        yield from _uncalled(session)
    if streams is not None:
        yield from missing_or_wrong(network, streams, trains, computed=computes and computes(network))
    return network


def _uncalled(session: Session) -> Iterator[Diagnostic]:
    """What is wrong in macros that nothing calls."""
    from cntkpy.networks.builders.ndl.idle import idle_problems, uncalled
    from cntkpy.networks.builders.ndl.scope import Instance

    expander = session.expander
    called = [one.macro for one in expander.expansion.created if isinstance(one, Instance)]
    names = [symbol.name.text for symbol in expander.expansion.top.symbols.values()]
    yield from idle_problems(uncalled(expander.macros, called), expander.macros, names)


def _brain_script(
    section: ConfigParameters,
    name: str,
    streams: Streams | None,
    trains: bool,
    computes: Computes | None,
    models: Models,
    strict: bool,
    asked: set[str],
) -> Generator[Diagnostic, None, Network | None]:
    """The network is evaluated and its shapes are inferred; no start value of a large parameter is drawn."""
    from cntkpy.networks.builders.brainscript.build import check_brainscript

    try:
        value = section.opaque(name)
    except ConfigError as error:  # a variable that is not defined
        yield error.diagnostic
        return None
    try:
        built = check_brainscript(value, str(section("precision", "float")), models.load)
        yield from built.warnings
        if strict:
            yield from _unused(value, built.network, asked)
        if trains:
            _find_criteria(built.network, section)
    except ModelToCome:
        return None
    except UserError as error:
        yield _of_file(error, value.span, models)
        return None
    if streams is not None:
        computed = computes and computes(built.network)
        yield from missing_or_wrong(built.network, streams, trains, _second_names(value), computed)
        if strict and trains:
            yield from unread(built.network, streams)
    return built.network


def _initial(section: ConfigParameters) -> ConfigValue | None:
    """The model that a training starts from, where it does not start from a builder."""
    p = TrainParameters(section)
    try:
        return p.given("initialModel") if starts_from_model(p) else None
    except ConfigError:
        return None  # found with the builders


def _loaded(
    value: ConfigValue,
    section: ConfigParameters,
    streams: Streams | None,
    models: Models,
) -> Generator[Diagnostic, None, Network | None]:
    """The model that a training starts from, against its data."""
    try:
        network = models.load(str(value), str(section("precision", "float")))
        _find_criteria(network, section)
    except ModelToCome:
        return None
    except UserError as error:
        yield _of_file(error, value.span, models)
        return None
    if streams is not None:
        yield from missing_or_wrong(network, streams, True)
    return network


def _missing_model(section: ConfigParameters, models: Models) -> Iterator[Diagnostic]:
    """The model that an action is going to load, where neither it is there nor an earlier command writes it.

    Where files need not be here, that is a hint, but a warning if an earlier command writes one of nearly that name.
    """
    try:
        value = section.find("modelPath")
    except ConfigError:
        return  # already found
    if not value or not models.is_missing(str(value)):
        return
    meant, message = _model_meant(str(value), models), f"there is no model {value}"
    from cntkpy.networks.files.model_file import why_no_model

    hint = meant or why_no_model(str(value))
    if models.here:
        yield Diagnostic("NoModel", message, value.span, hint)
    else:
        yield Diagnostic("MissingFile", message, value.span, hint, severity="warning" if meant else "error")


def _model_meant(path: str, models: Models) -> str | None:
    """Which model of an earlier command may be meant by one that is not there."""
    if whole := models.past_end(path):
        return f"the last epoch is saved as '{whole}'"
    near = models.near(path)
    return f"did you mean '{near}'?" if near else None


def _find_criteria(network: Network | ValidatedNetwork, section: ConfigParameters) -> None:
    from cntkpy.commands.actions.training import TrainingParameters
    from cntkpy.trainers.loop.criteria import choose_criteria

    choose_criteria(network, TrainingParameters(section).sgd)


def _of_file(error: UserError, place: Span | None, models: Models) -> Diagnostic:
    """What is wrong with a network that may need files.

    A missing model, or file of start values, is a hint where the data need not be here, and so is a file that an
    earlier command can write. The texts of a network, as its macros, belong to the configuration and are always needed.
    """
    found = error.diagnostic
    data = found.kind in ("NoModel", "CannotRead")
    hint = models.may_write(found.message) or (data and not models.here)
    kind = "MissingFile" if hint and (data or found.kind == "FileNotFound") else found.kind
    meant = _model_meant(found.message.rpartition(" ")[2], models) if found.kind == "NoModel" else None
    severity = "warning" if (meant and hint) or found.kind == "MissingPackage" else "error"
    return Diagnostic(kind, found.message, found.span or place, meant or found.hint, found.notes, severity=severity)


def _second_names(value: ConfigValue) -> dict[str, str]:
    """The members of a network in BrainScript that are other members by another name, in lower case, and these."""
    from cntkpy.networks.builders.brainscript.language.syntax import ArrayLiteral, Name

    found: dict[str, str] = {}
    record = _record(value)
    for name, one in record.members.items() if record is not None else ():
        made = one.value
        while isinstance(made, ArrayLiteral) and len(made.items) == 1:
            (made,) = made.items
        if isinstance(made, Name):
            found[name.lower()] = made.name
    return found


def _record(value: ConfigValue) -> RecordLiteral | None:
    """The text of a network in BrainScript, if that is a record."""
    from cntkpy.networks.builders.brainscript.language.syntax import New, RecordLiteral
    from cntkpy.networks.builders.brainscript.source import program_of

    program = program_of(value)
    record = program.expression.record if isinstance(program.expression, New) else program.expression
    return record if isinstance(record, RecordLiteral) else None


def _unused(value: ConfigValue, network: ValidatedNetwork, asked: set[str]) -> Iterator[Diagnostic]:
    """Members of a network in BrainScript that nothing refers to, and that are not nodes of a group."""
    from cntkpy.networks.builders.brainscript.language.syntax import Call, Name
    from cntkpy.networks.builders.brainscript.network import SPECIAL
    from cntkpy.networks.builders.brainscript.outline import outline_of
    from cntkpy.networks.builders.brainscript.program import taken_by_library
    from cntkpy.networks.builders.ndl.expand import ARRAYS

    record = _record(value)
    if record is None:
        return
    outline = outline_of(record)
    groups = {group: special for special, group in SPECIAL.items()}
    grouped = {node.name for members in network.groups.values() for node in members}
    used, named = outline.used(), grouped | asked | taken_by_library() | set(SPECIAL)
    for name, one in outline.members.items():
        made = one.value
        acts = isinstance(made, Call) and isinstance(made.function, Name) and made.function.name in EFFECTS
        included = value.span is not None and one.place.span.source is not value.span.source
        if one in used or acts or included or name in named:
            continue
        if meant := groups.get(ARRAYS.get(name.lower(), "")) or nearest(name, list(SPECIAL), NEAR):
            message, hint = f"'{name}' is not a group of nodes, and nothing uses it", f"did you mean '{meant}'?"
            yield Diagnostic("UnusedMember", message, one.place.span, hint, severity="warning")
        elif name.lower() == "networkdescription":
            message = f"'{name}' is a parameter of NDLNetworkBuilder, here it is a member that nothing uses"
            hint = 'a file in BrainScript is included: include "file.bs"'
            yield Diagnostic("UnusedMember", message, one.place.span, hint, severity="warning")
        else:
            message = f"nothing uses the member '{name}' of the network"
            yield Diagnostic("UnusedMember", message, one.place.span, "remove it, or name it in outputNodes")


def _editing(section: ConfigParameters, models: Models, strict: bool) -> Iterator[Diagnostic]:
    """The commands of a MEL script, each against its declaration; if these are right, the nodes that they name."""
    if not section.exists("editPath"):
        return
    from cntkpy.cntk_config.parameters import read_text_file
    from cntkpy.networks.builders.ndl.source import macro_documents
    from cntkpy.networks.mel.commands import makes_model
    from cntkpy.networks.mel.parse import Command, parse_commands
    from cntkpy.networks.mel.script import Editor, joined, scripts

    try:
        path, editor = section("editPath"), Editor("float", section=section)
    except ConfigError:
        return  # already found
    try:
        for document in macro_documents(section):
            editor.define_macros(document)
        documents = scripts(read_text_file(str(path), section), editor)
    except UserError as error:
        found = error.diagnostic
        yield Diagnostic(found.kind, found.message, found.span or path.span, found.hint)
        return
    wrong = False
    script: list[Statement] = []
    for document in documents:
        try:
            statements = list(joined(parse_commands(document, makes_model)))
            script += statements
        except UserError as error:
            yield error.diagnostic
            wrong = True
            continue
        snippets = any(isinstance(one, Command) and "ndlsnippet" in one.name.text.lower() for one in statements)
        for statement in statements:
            if snippets and not isinstance(statement, Command):
                continue  # their files may have macros
            try:
                yield from _check_statement(editor, statement)
            except UserError as error:
                yield error.diagnostic
                wrong = True
    if not wrong:
        yield from _lost(script, path.span)
    if strict and not wrong:  # a run edits when it comes to it, as CNTK does
        yield from _rehearsed(section, path.span, models)


def _lost(script: list[Statement], place: Span | None) -> Iterator[Diagnostic]:
    """Changes after the last command that writes a file; all of them, if there is none."""
    from cntkpy.networks.mel.commands import find
    from cntkpy.networks.mel.parse import Command, Inline

    kinds = [find(one.name.text) if isinstance(one, Command) else None for one in script]
    last = max((number for number, kind in enumerate(kinds) if kind is not None and kind.writes), default=None)
    if last is None:
        yield Diagnostic("NotSaved", "the script saves no model", place, "add SaveModel(m, file)")
        return
    for one, kind in zip(script[last + 1 :], kinds[last + 1 :], strict=True):
        if isinstance(one, Inline) or (kind is not None and kind.changes):
            message = "what the script does after its last SaveModel is lost"
            yield Diagnostic("NotSaved", message, one.place.span, "save the model once more at the end")
            return


def _rehearsed(section: ConfigParameters, place: Span | None, models: Models) -> Iterator[Diagnostic]:
    """What the models of a MEL script do not have: it is run with models that are there, and nothing is written."""
    from cntkpy.networks.files.model_file import as_reread
    from cntkpy.networks.mel.editor import Files
    from cntkpy.networks.mel.script import edit_file

    class Rehearsal(Files):
        """Models without values; those that the script saves are kept."""

        values = False

        def __init__(self) -> None:
            self.saved: dict[str, ValidatedNetwork] = {}

        def load(self, path: str, precision: str) -> Network:
            saved = self.saved.get(os.path.normpath(path))
            return models.of_file(path, precision) if saved is None else as_reread(saved, precision)

        def save(self, path: str, network: ValidatedNetwork) -> None:
            self.saved[os.path.normpath(path)] = as_reread(network)

        def dump(self, path: str, network: Network, nodes: Iterable[Node], values: bool) -> None:
            """Nothing is written."""

    log = logging.getLogger("cntkpy.networks")
    silent, log.disabled = log.disabled, True
    rehearsal = Rehearsal()
    try:
        edit_file(str(section("editPath")), section, str(section("precision", "float")), files=rehearsal)
        models.has_saved(rehearsal.saved)
    except ModelToCome:
        return
    except UserError as error:
        yield _of_file(error, place, models)
    finally:
        log.disabled = silent


def _check_statement(editor: Editor, statement: Statement) -> Iterator[Diagnostic]:
    """A statement of MEL by itself: a command against its declaration, a call against the macros that are known."""
    from cntkpy.networks.builders.ndl.idle import idle_problems
    from cntkpy.networks.builders.ndl.parse import parse_document
    from cntkpy.networks.mel.commands import COMMANDS, find
    from cntkpy.networks.mel.parse import Command, Inline, part
    from cntkpy.networks.mel.request import request
    from cntkpy.networks.mel.script import check_function

    if isinstance(statement, Command):
        kind = find(statement.name.text)
        asked = request(statement, kind, COMMANDS)
        if kind is not None and kind.writes and asked.arguments:
            file = asked.arguments[-1]
            yield from windows_output(file.text, statement.name.text, file.place.span)
    elif isinstance(statement, Inline):
        for function in statement.functions:
            check_function(editor, function)
        yield from idle_problems(parse_document(part(statement.place))[0], editor.macros)
    else:
        editor.define_macros(part(statement.place))
        yield from idle_problems(parse_document(part(statement.place))[0], editor.macros)
