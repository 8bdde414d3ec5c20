"""The number that compares trials, and its extraction from the events of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from cntkpy.cntk_config import ConfigError, ConfigParameters, UserError, suggestion
from cntkpy.commands.actions.train import TrainParameters
from cntkpy.commands.catalogue.section_map import section_map
from cntkpy.commands.checks.scan import scan_commands
from cntkpy.commands.described_network import describe_network
from cntkpy.commands.runs import plain


@dataclass(frozen=True)
class Criterion:
    """The number that is to be small.

    Attributes:
        command: whose events have it.
        node: which node it is the value of; empty: the first one, the training criterion.
        trains: the command trains: the value after its last epoch counts. Otherwise its final result.
        validates: the training has a `cvReader`: the value on its data counts.
    """

    command: str
    node: str
    trains: bool
    validates: bool

    def __str__(self) -> str:
        where = (", validation data" if self.validates else ", training data") if self.trains else ""
        return f"{self.node or 'criterion'} of {self.command}{where}"


def choose_criterion(root: ConfigParameters, text: str) -> Criterion:
    """Return the criterion that a configuration and `--criterion` name.

    Args:
        root: the configuration.
        text: `NODE`, `COMMAND`, `COMMAND:NODE`, or nothing: that of the last training.

    Raises:
        ConfigError: there is no such command, or none that trains.
    """
    commands = {command.name.lower(): command for command in scan_commands(section_map(root))}
    trainings = [command for command in commands.values() if command.trains]
    name, colon, node = text.partition(":")
    if name.lower() in commands:
        chosen = commands[name.lower()]
    elif colon:
        hint = suggestion(name, [command.name for command in commands.values()])
        raise ConfigError("MissingSection", f"--criterion {text}: no command '{name}' is listed", None, hint)
    elif trainings:
        chosen, node = trainings[-1], name
    else:
        hint = "name one of the commands with --criterion COMMAND"
        raise ConfigError("MissingSection", "no command of the configuration trains", None, hint)
    validates = chosen.trains and TrainParameters.cv_reader.find(chosen.section) is not None
    return Criterion(chosen.name, node, chosen.trains, validates)


def check_node(root: ConfigParameters, criterion: Criterion) -> None:
    """Check that the network of the last training has the node of a criterion.

    A network that only the run knows, such as that of a model, is not looked at.

    Raises:
        ConfigError: it has no such node.
    """
    trainings = [command.name for command in scan_commands(section_map(root)) if command.trains]
    if not criterion.node or not trainings:
        return
    try:
        network = describe_network(root, criterion.command if criterion.trains else trainings[-1]).network
    except UserError:
        return
    if any(name.lower() == criterion.node.lower() for name in network.nodes):
        return
    reported = [node.name for group in ("criterion", "evaluation") for node in network.groups[group]]
    hint = suggestion(criterion.node, reported) or f"name one of {', '.join(reported)}"
    raise ConfigError("UnknownNode", f"--criterion: the network has no node '{criterion.node}'", None, hint)


@dataclass
class Progress:
    """Progress of a trial, from its events so far.

    Attributes:
        criterion: what is looked for.
        epochs: how many have finished.
        value: the newest value of the criterion.
        others: the nodes of an event that should have had it.
    """

    criterion: Criterion
    epochs: int = 0
    value: float | None = None
    others: list[str] = field(default_factory=list[str])

    def observe(self, event: Mapping[str, Any]) -> tuple[int, float] | None:
        """Take note of an event; the epoch and its criterion, if the event is the report of an epoch."""
        name, wanted, epoch = event.get("event"), self.criterion, event.get("epoch")
        if name == "epoch finished" and plain.is_count(epoch):
            self.epochs = plain.count(epoch)
        kind = ("validation" if wanted.validates else "epoch finished") if wanted.trains else "final results"
        nodes = event.get("nodes")
        if name != kind or str(event.get("command")).lower() != wanted.command.lower() or not isinstance(nodes, dict):
            return None
        value = self._value(cast("dict[str, Any]", nodes))
        if value is None:
            return None
        self.value = value
        return (plain.count(epoch), value) if plain.is_count(epoch) else None

    def _value(self, nodes: dict[str, Any]) -> float | None:
        values = {name.lower(): value for name, value in nodes.items()}
        value = values.get(self.criterion.node.lower()) if self.criterion.node else next(iter(nodes.values()), None)
        if self.criterion.node and self.criterion.node.lower() not in values:
            self.others = list(nodes)
        return plain.number(value)
