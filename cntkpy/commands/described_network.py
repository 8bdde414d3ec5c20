"""The network that a command of a configuration describes: names, shapes and origins, without start values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import UserError, suggestion
from cntkpy.networks.builders.parameters import builder_of
from cntkpy.networks.builders.registry import BRAIN_SCRIPT, EXPERIMENTAL, NDL, SIMPLE

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Network, Node


@dataclass
class Described:
    """The network of a command.

    Attributes:
        command: its name.
        builder: the key of its description.
        network: with shapes, without values.
        trails: for each node, where it was made, then the calls that led there, the last one first.
    """

    command: str
    builder: str
    network: Network
    trails: dict[Node, list[str]]


def commands_with_networks(root: ConfigParameters) -> Iterator[str]:
    """Yield the commands of a configuration that have a builder of their own, in the order of `command`, then
    others.
    """
    try:
        listed = [str(name) for name in root.array("command", "train")]
    except ConfigError:
        listed = []
    for name in dict.fromkeys([*listed, *root.names()]):
        entry = root.definition(name)
        if entry is None or not entry.bracket:
            continue
        try:
            section = root.section(name)
        except ConfigError:
            continue
        builder = builder_of(section)
        if builder is not None and (section.exists_current(builder.name) or name in listed):
            yield name


def describe_network(root: ConfigParameters, command: str | None = None) -> Described:
    """Return the network of a command; of the first one that has a builder, if none is named.

    Raises:
        UserError: there is none, or its description is wrong.
    """
    names = list(commands_with_networks(root))
    if command is None:
        if not names:
            message = "no command of the configuration describes a network"
            hint = "a model file is shown with `cntkpy show FILE`"
            raise UserError("UnknownBuilder", message, root.span, hint)
        command = names[0]
    name = next((name for name in names if name.lower() == command.lower()), None)
    if name is None:
        message = f"no command '{command}' describes a network"
        raise UserError("UnknownBuilder", message, root.span, suggestion(command, names))
    section = root.section(name)
    builder = builder_of(section)
    assert builder is not None
    network, trails = _MAKERS.get(builder.name, _unsupported)(section, builder.name)
    return Described(name, builder.name, network, trails)


Found: TypeAlias = "tuple[Network, dict[Node, list[str]]]"


def _brain_script(section: ConfigParameters, name: str) -> Found:
    from cntkpy.networks.builders.brainscript.build import outline_brainscript

    built = outline_brainscript(section.opaque(name), str(section("precision", "float")))
    return built.network, {node: [str(place) for place in built.trail(node)] for node in built.values}


def _ndl(section: ConfigParameters, name: str) -> Found:
    from cntkpy.networks.builders.ndl.front_end import Session, find_program
    from cntkpy.networks.graph.initialize import SeedCounter
    from cntkpy.networks.graph.network import Network

    network = Network(str(section("precision", "float")), values=False)
    Session(network).run(find_program(section.section(name)))
    seeds = SeedCounter()
    for node in network.nodes.values():
        if node.init is not None:
            node.init.assign_seed(seeds, int(node.options.get("randomSeed", -1)))
    network.validate()
    return network, _spans(network)


def _simple(section: ConfigParameters, name: str) -> Found:
    from cntkpy.networks.builders.simple.front_end import outline_simple

    network = outline_simple(section.section(name), str(section("precision", "float")))
    return network, _spans(network)


def _unsupported(section: ConfigParameters, name: str) -> Found:
    raise UserError("Unsupported", f"a network of {name} cannot be shown", section.span)


def _spans(network: Network) -> dict[Node, list[str]]:
    return {node: [] if node.span is None else [str(node.span)] for node in network.nodes.values()}


_MAKERS = {BRAIN_SCRIPT.name: _brain_script, EXPERIMENTAL.name: _brain_script, NDL.name: _ndl, SIMPLE.name: _simple}
