"""Networks of a configuration, built without values: names, options, shapes, and the reader's streams.

Each builder checks its own section (`networks.builders.check`). Only what is needed is imported: NDL for a command that
uses it. Nothing is computed, no start value is drawn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span, UserError
from cntkpy.cntk_config.declare import SECTION, Parameter
from cntkpy.commands.actions.train import TrainParameters, starts_from_model
from cntkpy.commands.catalogue.dispatch import EVALUATES, has_trait, names_of
from cntkpy.commands.catalogue.section_map import TopLevel, Use
from cntkpy.commands.checks.edits import edit_problems
from cntkpy.commands.checks.models import Models, ModelToCome, located, model_meant
from cntkpy.commands.checks.outlines import NODES, READING, Outlines, evaluated
from cntkpy.commands.checks.scan import trains
from cntkpy.commands.checks.streams import Streams, layers_beside, missing_or_wrong, reader_streams, unread
from cntkpy.networks.builders.check import Check, CheckContext, CheckedNetwork
from cntkpy.networks.builders.criteria import idle_criteria, swapped_operands
from cntkpy.networks.builders.parameters import builder_of, entry_of

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Network, Node, ValidatedNetwork


def network_problems(
    top: TopLevel,
    *,
    strict: bool = True,
    here: bool = False,
    looks_at: Callable[[Use, Models], bool] = lambda use, models: True,
    outlines: Outlines | None = None,
) -> Iterator[Diagnostic]:
    """Look at the networks of all commands.

    Without `strict` as a run does: options that CNTK ignores are none of the findings. Where files are `here`, a model
    that a listed command loads must be there. A command that `looks_at` leaves out may write models nevertheless.
    `outlines` gets the networks of the commands.
    """
    models, outlines = Models(here, complete=not top.lacks_command()), outlines or Outlines()
    asked = _asked_for(top)
    edits = strict and any("edit" in use.actions for use in top.parts)
    for use in top.parts:
        if not top.runs(use):
            continue
        is_looked_at = looks_at(use, models)
        checked = (yield from _problems(use, models, strict, asked)) if is_looked_at else None
        network = checked.make() if checked is not None and checked.inputs is None else None
        if checked is not None and trains(use):
            yield from _training_problems(use, checked, network, strict)
        if is_looked_at:
            yield from outlines.beside(use, checked, models)
        if network is None and checked is not None and edits and trains(use):
            with suppress(UserError):  # found by the command itself
                network = checked.make()
        models.pass_command(use, network)
    for use in top.parts if strict else ():
        if not top.runs(use) and looks_at(use, models):
            yield from _in_idle_command(_problems(use, models, strict, asked))


def _training_problems(
    use: Use, checked: CheckedNetwork, network: Network | None, strict: bool
) -> Iterator[Diagnostic]:
    """Check the criteria of a network that is trained, and the rates of the trainer."""
    if network is not None:
        for problem in (*swapped_operands(network), *idle_criteria(network)):
            yield replace(problem, span=problem.span or checked.span)
    if strict:
        yield from _idle_settings(use, checked)


def _in_idle_command(problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield warnings of errors in a network by itself: `command=NAME` on the command line may come with more."""
    for problem in problems:
        if (problem.rule.code in OF_NETWORKS and problem.kind != "UnknownModel") or problem.kind == "FileNotFound":
            yield replace(problem, severity="warning")


def _idle_settings(use: Use, checked: CheckedNetwork) -> Iterator[Diagnostic]:
    """Report rates of the trainer for nodes that the network does not have; the run warns of them by itself."""
    from cntkpy.trainers.rules.idle import idle_settings

    try:
        sgd = TrainParameters(use.section).sgd
        if checked.inputs is not None and sgd.given("dropoutRate") is None:
            return
        for setting in idle_settings(sgd, checked.make()):
            remedy = checked.remedies.get(setting.operation, f"add a {setting.operation} node")
            message = f"{setting.value.path}: it has no effect, the network has no {setting.operation} node"
            yield Diagnostic(
                "IgnoredParameter", message, setting.value.span, f"{remedy}, or remove it", severity="warning"
            )
    except UserError:
        return  # found where values are looked at


class Computed(NamedTuple):
    """A network that a command evaluates on its data."""

    network: ValidatedNetwork
    nodes: list[Node]
    """The nodes that are computed."""


def computed_networks(top: TopLevel) -> dict[str, Computed]:
    """Return the network of each command that reads data, by the path of its section; a command is left out where
    its network is not known before the run."""
    outlines, computed = Outlines(), dict[str, Computed]()
    deque(network_problems(top, looks_at=lambda use, models: top.runs(use), outlines=outlines), maxlen=0)
    for use in top.parts:
        make = outlines.networks.get(use.section.path)
        if make is None or not set(use.actions) <= READING:
            continue
        with suppress(UserError, ModelToCome):  # reported with the networks
            network = make()
            nodes = _criteria(network, use.section) if trains(use) else evaluated(use, network)
            if nodes:
                validated = network.validate()
                computed[use.section.path] = Computed(validated, [validated.nodes[node.name] for node in nodes])
    return computed


def _asked_for(top: Use) -> set[str]:
    """Return the nodes that commands name, whatever network they mean."""
    try:
        named = [(parameter, use) for use in top.parts for parameter in filter(None, map(use.parameter, NODES))]
        return {
            str(word)
            for parameter, use in named
            for word in cast("list[ConfigValue]", parameter.read(use.section) or [])
        }
    except UserError:
        return set()  # found where values are looked at


def _problems(
    use: Use, models: Models, strict: bool, asked: set[str]
) -> Generator[Diagnostic, None, CheckedNetwork | None]:
    """Check the network of a command; return the one that it trains or that its builder makes, if that is known."""
    section, reader = use.section, use.part("reader")
    if "edit" in use.actions:
        yield from edit_problems(section, models, strict)
    streams = reader_streams(reader) if reader else None
    if trains(use) and (value := _initial(section)) is not None:
        return (yield from _loaded(value, section, streams, models))
    builder = builder_of(section)
    loads = any(has_trait(action, EVALUATES) or action in LOADING for action in use.actions)
    if loads and builder is None and not trains(use):
        yield from _missing_model(section, models)
    if builder is None or not _has_section(use, builder):
        return None
    context = CheckContext(str(section("precision", "float")), models.load, trains(use), strict, asked)
    return (yield from _built(use, builder, streams, context, models))


def _built(
    use: Use, builder: Parameter[Any], streams: Streams | None, context: CheckContext, models: Models
) -> Generator[Diagnostic, None, CheckedNetwork | None]:
    """Ask the builder of a command to check its section; check the criteria and the reader's streams."""
    section = use.section
    check: Check | None = entry_of(builder).load_check()
    if check is None:
        return None
    span = section.span
    try:
        value = builder.read(section) if builder.type is SECTION else section.opaque(builder.name)
        span = value.span or span
        checked = yield from _with_files(check(value, context), span, models)
        if checked is None:
            return None
        checked = replace(checked, span=span)
        network = checked.make() if checked.inputs is None else None
        if context.trains and (network is not None or _names_criteria(section)):
            _criteria(checked.make(), section)
    except ModelToCome:
        return None
    except UserError as error:
        yield located(error.diagnostic, span, models)
        return None
    if streams is not None and network is None:
        yield from layers_beside(checked.inputs or [], streams, builder.name, span, context.trains)
    elif streams is not None and network is not None:
        for problem in _stream_problems(use, checked, network, streams, context):
            yield replace(problem, span=problem.span or span)
    return checked


def _with_files(
    problems: Generator[Diagnostic, None, CheckedNetwork | None], place: Span | None, models: Models
) -> Generator[Diagnostic, None, CheckedNetwork | None]:
    """Yield the problems of a builder, with errors of files as `located` has them; return its network."""
    while True:
        try:
            problem = next(problems)
        except StopIteration as end:
            return end.value
        yield located(problem, place, models) if problem.severity == "error" else problem


def _stream_problems(
    use: Use, checked: CheckedNetwork, network: Network, streams: Streams, context: CheckContext
) -> Iterator[Diagnostic]:
    """Check the streams of a reader against the inputs of a network."""
    computed = evaluated(use, network) if not context.trains and set(use.actions) <= READING else None
    yield from missing_or_wrong(network, streams, context.trains, checked.aliases, computed)
    if context.strict and context.trains and checked.reads_all_streams:
        yield from unread(network, streams)


def _has_section(use: Use, builder: Parameter[Any]) -> bool:
    """Return whether a command itself has a builder with a section that can be read."""
    return use.part(builder.name) is not None if builder.type is SECTION else use.section.exists_current(builder.name)


LOADING = frozenset({*names_of("dumpNode"), *names_of("SVD")})
"""Actions that load a model, and do not compute it."""
OF_NETWORKS = ("CK050", "CK051", "CK052", "CK053", "CK055", "CK056")
"""Statements, names, arguments, shapes, and the reader's streams."""


def _names_criteria(section: ConfigParameters) -> bool:
    """Return whether the trainer names its criteria."""
    sgd = TrainParameters(section).sgd
    return bool(sgd.train_criterion or sgd.eval_criterion)


def _initial(section: ConfigParameters) -> ConfigValue | None:
    """Return the model that a training starts from, where it does not start from a builder."""
    p = TrainParameters(section)
    try:
        return p.given("initialModel") if starts_from_model(p) else None
    except ConfigError:
        return None  # found with the builders


def _loaded(
    value: ConfigValue, section: ConfigParameters, streams: Streams | None, models: Models
) -> Generator[Diagnostic, None, CheckedNetwork | None]:
    """Check the model that a training starts from against its data."""
    try:
        network = models.load(str(value), str(section("precision", "float")))
        _criteria(network, section)
    except ModelToCome:
        return None
    except UserError as error:
        yield located(error.diagnostic, value.span, models)
        return None
    if streams is not None:
        yield from missing_or_wrong(network, streams, True)
    return CheckedNetwork(lambda: network, span=value.span)


def _missing_model(section: ConfigParameters, models: Models) -> Iterator[Diagnostic]:
    """Report the model that an action is going to load, where neither it is there nor an earlier command writes it.

    Where files need not be here, that is a hint, but a warning if an earlier command writes one of nearly that name.
    """
    try:
        value = section.find("modelPath")
    except ConfigError:
        return  # already found
    if not value or not models.is_missing(str(value)):
        return
    meant, message = model_meant(str(value), models), f"there is no model {value}"
    from cntkpy.networks.files.model_file import why_no_model

    hint = meant or why_no_model(str(value))
    if models.here:
        yield Diagnostic("NoModel", message, value.span, hint)
    else:
        yield Diagnostic("MissingFile", message, value.span, hint, severity="warning" if meant else "error")


def _criteria(network: Network | ValidatedNetwork, section: ConfigParameters) -> list[Node]:
    """Return the criterion that is trained, and the nodes that are reported."""
    from cntkpy.commands.actions.training import TrainingParameters
    from cntkpy.trainers.fronts.config.criteria import choose_criteria

    criteria, evaluations = choose_criteria(network, TrainingParameters(section).sgd)
    return [criteria[0], *evaluations]
