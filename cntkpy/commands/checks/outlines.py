"""Check nodes that commands name, and data that they read, against the networks that trainings before them make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from cntkpy.cntk_config import ConfigValue
from cntkpy.cntk_config.base.diagnostics import Diagnostic, UserError
from cntkpy.commands.actions.dump_node import DumpNodeParameters, names_one_node
from cntkpy.commands.actions.networks_and_readers import NOTHING_TO_WRITE, what_to_write
from cntkpy.commands.actions.train import TrainParameters
from cntkpy.commands.catalogue.dispatch import names_of
from cntkpy.commands.catalogue.section_map import Use
from cntkpy.commands.checks.models import Models, ModelToCome
from cntkpy.commands.checks.scan import TRAINING, trains
from cntkpy.commands.checks.streams import beside_model, needed_inputs, reader_streams
from cntkpy.networks.builders.check import CheckedNetwork, Input
from cntkpy.networks.builders.parameters import builder_of

if TYPE_CHECKING:
    from typing import Any

    from cntkpy.cntk_config.declare import Parameter
    from cntkpy.networks.graph.network import Network, Node, ValidatedNetwork

WRITE = "write"
"""The action that writes the outputs of a network if no nodes are named."""
NODES = ("evalNodeNames", "outputNodeNames")
"""Parameters that name nodes of the network, which are computed."""
NAMING = (*NODES, "nodeName", "refNodeName")
"""Parameters that name nodes."""
READING = frozenset(
    {WRITE, *TRAINING, *(name for action in ("test", "testUnroll", "cv", "adapt") for name in names_of(action))}
)
"""Actions that compute nodes on data; what `bnstat` needs of the data is not known."""
SAME_NODES = {"adapt": "modelPath", "bnstat": "newModelPath"}
"""Actions that make a model of the same nodes, and the parameter that names it."""


class Outlines:
    """The networks of trainings, by the files of their models, for what later commands ask of them.

    For other models their files are looked at.
    """

    def __init__(self) -> None:
        self._known: dict[str, Callable[[], Network | ValidatedNetwork]] = {}
        self._plain: dict[str, list[Input]] = {}
        """The inputs of feed-forward networks: they are known without the network."""
        self.networks: dict[str, Callable[[], Network | ValidatedNetwork]] = {}
        """The networks that commands compute, by the paths of their sections."""

    def beside(self, use: Use, checked: CheckedNetwork | None, models: Models) -> Iterator[Diagnostic]:
        """Check a command against its network: nodes that it names, data that it reads; that of a training is kept.

        Args:
            use: the command.
            checked: the network that it trains or that its builder makes, if that is known.
            models: those that are there before the command.
        """
        if "edit" in use.actions:
            self._known.clear()  # it may change any of them
            self._plain.clear()
        has_builder = builder_of(use.section) is not None
        make = checked.make if checked is not None and has_builder else None
        try:
            if trains(use) and checked is not None and make is not None:
                path = str(TrainParameters(use.section).sgd.model_path)
                self._known[path] = make
                self._plain[path] = checked.inputs or []
                yield from self._data(use, make, path, "cvReader", "the network")
            path = _model_of(use)
            loads = not trains(use) and (not has_builder or "adapt" in use.actions)
            network = (self._known.get(path) or _file(path, use, models)) if loads else make
            if (computed := network or (checked and checked.make)) is not None:
                self.networks[use.section.path] = computed
            if network is not None and any(parameter.value(use.section) for parameter in _naming(use)):
                yield from _unknown_nodes(use, network())
            elif WRITE in use.actions and not trains(use):
                yield from _nothing_to_write(use, self._written(path, models, checked, network if loads else None))
            if loads and network is not None:
                yield from self._data(use, network, path, "reader", f"the model {path}")
                self._passes_on(use, path)
        except (UserError, ModelToCome):
            return  # found where values are looked at, or by the command itself

    def _written(
        self,
        path: str,
        models: Models,
        checked: CheckedNetwork | None,
        loaded: Callable[[], Network | ValidatedNetwork] | None,
    ) -> Network | ValidatedNetwork | None:
        """Return the network whose outputs a command writes, if that is known; `loaded`: that of its model."""
        if checked is not None:
            return checked.make() if checked.inputs is None else None
        network = models.built(path) if loaded is not None else None
        return loaded() if network is None and loaded is not None and path not in self._known else network

    def _data(
        self, use: Use, make: Callable[[], Network | ValidatedNetwork], path: str, role: str, owner: str
    ) -> Iterator[Diagnostic]:
        """Compare the streams of a command's reader with the inputs of the network."""
        reader = use.part(role)
        streams = reader_streams(reader) if reader is not None and set(use.actions) <= READING else None
        if reader is None or streams is None:
            return
        inputs = self._plain.get(path)
        if not inputs or any(parameter.name in NODES for parameter in _naming(use)):
            network = make()
            inputs = needed_inputs(network, evaluated(use, network))
        elif WRITE in use.actions:
            inputs = inputs[:1]
        yield from beside_model(inputs, streams, reader, owner)

    def _passes_on(self, use: Use, path: str) -> None:
        """Note the model that a command makes of the one that it loads, if that has the same nodes."""
        for action, name in SAME_NODES.items():
            if action in use.actions and path in self._known and (new := _path(use, name)):
                self._known[new], self._plain[new] = self._known[path], self._plain.get(path, [])


def _model_of(use: Use) -> str:
    """Return the model that a command loads."""
    return _path(use, "origModelFileName" if "adapt" in use.actions else "modelPath")


def _path(use: Use, name: str) -> str:
    """Return the value of a command's own parameter, or of one that its sections read."""
    declared = use.parameter(name)
    return str((declared.value(use.section) if declared is not None else use.section.find(name)) or "")


def _naming(use: Use) -> list[Parameter[Any]]:
    """Return the parameters of a command that name nodes, where they are given."""
    return [
        parameter
        for parameter in map(use.parameter, NAMING)
        if parameter is not None and parameter.find(use.section) is not None
    ]


def evaluated(use: Use, network: Network | ValidatedNetwork) -> list[Node]:
    """Return the nodes that a command computes: those that it names, or those of the groups that it takes then."""
    names = [word for parameter in _naming(use) if parameter.name in NODES for word in _words(use, parameter)]
    if names:
        return [network.nodes[str(name)] for name in names if str(name) in network.nodes]
    groups = ("output",) if WRITE in use.actions else ("evaluation", "criterion")
    return [node for group in groups for node in network.groups[group]]


def _words(use: Use, parameter: Parameter[Any]) -> list[ConfigValue]:
    """Return the names of nodes that a parameter gives."""
    if parameter.name in NODES:
        return cast("list[ConfigValue]", parameter.read(use.section) or [])
    word = parameter.value(use.section)
    return [word] if word else []


def _file(path: str, use: Use, models: Models) -> Callable[[], Network] | None:
    """Return the network of a model file, without the values of its parameters."""
    return (lambda: models.load(path, str(use.section("precision", "float")))) if path else None


def _nothing_to_write(use: Use, network: Network | ValidatedNetwork | None) -> Iterator[Diagnostic]:
    """Report a network without outputs as the action itself does."""
    if network is None or network.groups["output"]:
        return
    action = use.section.find("action")
    span = action.span if action is not None else use.section.span
    yield Diagnostic("UnknownNode", NOTHING_TO_WRITE, span, what_to_write(network))


def _unknown_nodes(use: Use, network: Network | ValidatedNetwork) -> Iterator[Diagnostic]:
    """Report the nodes that a command asks for, and that the network does not have."""
    if DumpNodeParameters in use.declared and not names_one_node(DumpNodeParameters(use.section)):
        return
    for entry in _naming(use):
        words = _words(use, entry)
        unknown: list[Diagnostic] = []
        for word in words:
            try:
                network.find(str(word))
            except UserError as error:
                unknown.append(word.error("UnknownNode", error.message, error.hint).diagnostic)
        some = len(unknown) < len(words) and "cv" not in use.actions  # the others are left out, as in CNTK
        yield from (replace(entry, severity="warning") if some else entry for entry in unknown)
