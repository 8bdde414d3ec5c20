"""Helpers shared by several actions: a network (built or loaded), a device to compute on, a reader for a section."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.declare import PATH, Declared, Parameter
from cntkpy.commands.context.device import names_of
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.builders.parameters import BuilderParameters, OutputParameters, builder_of

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext
    from cntkpy.networks.graph.network import Network, Node, ValidatedNetwork
    from cntkpy.readers.contracts import MinibatchReader
    from cntkpy.trainers.parallel.process_group import ProcessGroup

log = logging.getLogger("cntkpy.commands")


class ModelParameters(BuilderParameters, OutputParameters):
    """Source of an action's network: it is built if there is a builder, and loaded otherwise."""

    model_path = Parameter("modelPath", PATH, help="The model file.")


def choose_device(context: RunContext, training: bool = False, say: bool = True) -> str:
    """Make JAX compute on the devices of `deviceId`, on the first of them if not `training`; returns the log's name.

    say: let the log say here what was chosen; that it is the CPU is not said.
    """
    devices = context.device.here()
    jax.config.update("jax_default_device", devices[0])
    name = names_of(devices if training else devices[:1])
    if name != "CPU" and say:
        log.info("Using %s.", name)
    return name


def process_group_of(context: RunContext) -> ProcessGroup:
    """Return the devices of this process and of the others."""
    from cntkpy.trainers.parallel.communicator import Communicator
    from cntkpy.trainers.parallel.process_group import process_group_of

    return process_group_of(context.link or Communicator(), context.device.here())


def build(section: ConfigParameters, context: RunContext) -> ValidatedNetwork | None:
    """Return the network of a builder section, validated; `None` if no builder section is visible."""
    from cntkpy.networks.builders.build import build_network, has_builder

    if not has_builder(section):
        return None
    network = build_network(section, context.precision, context.seeds)
    pad_channels(network, context)
    return network


def pad_channels(network: ValidatedNetwork, context: RunContext, new: Set[Node] | None = None) -> None:
    """Give the 2-D convolutions of a new network the padding that CNTK's code for the device has.

    CNTK's CPU code pads the axis of channels, too. The network keeps that padding wherever it runs later.

    Args:
        network: the network.
        context: knows the device.
        new: the nodes that are looked at, where others have the padding of the network they come from; None: all.
    """
    from cntkpy.networks.nodes.images.convolution import CHANNEL_PADDING, missed_channels

    nodes = (node for node in network.nodes.values() if new is None or node in new)
    missing = {
        node: missed
        for node in nodes
        if not node.options.get(CHANNEL_PADDING.name) and (missed := missed_channels(node))
    }
    if not missing or context.device.here()[0].platform != "cpu":
        return
    for node in missing:
        node.options[CHANNEL_PADDING.name] = True
    node, missed = next(iter(missing.items()))
    log.warning(
        "WARNING: zeroPadding of '%s' pads the channels, too, as in CNTK on a CPU: the last %d of its %d input "
        "channels have no effect%s. Convolution (W, x, {kW, kH, C}, mapCount=M, stride={sW, sH, C}, "
        "autoPadding={true, true, false}) pads the width and the height alone.",
        node.name,
        missed,
        (node.input(1).shape or (0,))[-1],
        f", and {len(missing) - 1} more convolutions are like it" if len(missing) > 1 else "",
    )


def build_or_load(section: ConfigParameters, context: RunContext) -> ValidatedNetwork:
    """Return the network that an action evaluates.

    That is the model that an earlier action of the same command has trained; else a new network if a builder section is
    visible (inherited ones count), with a warning; else the model of `modelPath`.
    """
    if context.trained is not None:
        return load(context.trained, context)
    network = build(section, context)
    if network is None:
        return load(str(ModelParameters(section).model_path), context)
    if any(node.init is not None for node in network.parameters()):
        _warn_of_start_values(section, network, context)
    return network


def _warn_of_start_values(section: ConfigParameters, network: ValidatedNetwork, context: RunContext) -> None:
    """Say that a network is evaluated which nothing has trained, or parameters of it."""
    builder = builder_of(section)
    assert builder is not None
    place = builder.value(section)
    where = f" at {place.span}" if place is not None and place.span is not None else ""
    fresh = [node.name for node in network.parameters() if node.init is not None]
    if any(node.is_parameter and node.init is None for node in network.nodes.values()):
        log.warning(
            "WARNING: action %s of command %s evaluates parameters that nothing has trained: %s; the %s%s makes them.",
            context.action,
            context.command,
            ", ".join(f"'{name}'" for name in fresh[:5]) + (", ..." if len(fresh) > 5 else ""),
            builder.name,
            where,
        )
        return
    log.warning(
        "WARNING: action %s of command %s evaluates a new, untrained network, built by the %s%s; no model is loaded.",
        context.action,
        context.command,
        builder.name,
        where,
    )


def load(path: str, context: RunContext) -> ValidatedNetwork:
    """Return the network of a model file, in the precision of the run."""
    from cntkpy.networks.files.model_file import load_model

    return load_model(path, context.precision)


def reader_for(
    section: ConfigParameters,
    name: str,
    context: RunContext,
    stop: Callable[[], bool] | None = None,
    **extra_values: str,
) -> MinibatchReader:
    """Return a reader made from a sub-section; a run that a signal can stop does not wait for it forever.

    Args:
        section, name: the command section and the name of the sub-section.
        stop: whether the run should stop and may do so while it reads; `context.stop` by default.
        extra_values: parameters that the action sets in the reader's section, whatever is there.
    """
    from cntkpy.readers.registry import create_reader

    reader = section.section(name)
    for key, value in extra_values.items():
        reader.insert(key, value)
    stop = stop or context.stop
    if stop is None:
        return create_reader(reader, context.data_precision)
    from cntkpy.trainers.step.reading import InterruptibleReader

    return InterruptibleReader(lambda: create_reader(reader, context.data_precision), stop)


def log_ignored(p: Declared, section: str, context: RunContext) -> None:
    """Mention the parameters of a section that change nothing, at traceLevel 1."""
    from cntkpy.trainers.parameters.sgd import ignored

    if context.trace_level > 0:
        for name, reason in ignored(p):
            log.info("%s: %s has no effect. %s", section, name, reason)


NOTHING_TO_WRITE = "there is no node to write: the network has no output"
CANDIDATES = 5
"""Nodes at most that are offered to be written."""


def what_to_write(network: Network | ValidatedNetwork) -> str:
    """Return a hint for a network without outputs: predictions are the inputs of criteria and evaluations, except
    inputs."""
    ends = [*network.groups["criterion"], *network.groups["evaluation"]]
    fed = {id(item) for node in network.nodes.values() for item in node.connected}
    other_nodes = [
        node for node in network.nodes.values() if node.connected and id(node) not in fed and node not in ends
    ]
    result = dict.fromkeys(source.name for node in ends for source in node.connected if source.connected)
    names = list(result or dict.fromkeys(node.name for node in other_nodes or ends))
    if not names:
        return "name nodes of the network in outputNodeNames; `cntkpy show MODEL` lists them"
    extra_text = ", ..." if len(names) > CANDIDATES else ""
    return f"write outputNodeNames = {names[0]}; candidates: {', '.join(names[:CANDIDATES])}{extra_text}"


def find_nodes(network: ValidatedNetwork, names: Sequence[ConfigValue], *, every: bool = False) -> list[Node]:
    """Return the nodes of these names; beside names that exist, others are left out with a warning, as in CNTK.

    Args:
        network: the network.
        names: the names, with their places.
        every: all of them have to exist.

    Raises:
        ConfigError: there is no node of the only name, or of any, at the name; with the nearest one.
    """
    nodes: list[Node] = []
    unknown: list[ConfigError] = []
    for name in names:
        try:
            nodes.append(network.find(str(name)))
        except UserError as error:
            unknown.append(name.error("UnknownNode", str(error), error.diagnostic.hint))
    if unknown and (every or not nodes):
        raise unknown[0]
    for error in unknown:
        warning = replace(error.diagnostic, severity="warning")
        hint = f" ({warning.hint})" if warning.hint else ""
        log.warning("WARNING: %s%s; it is left out", warning.one_line(), hint)
    return nodes
