"""`action = bnstat`: the statistics of batch normalisation estimated again after training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.declare import COUNT, INTEGER, PATH, SECTION, TEXT, Parameter, array, per_epoch
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.networks_and_readers import (
    build_or_load,
    choose_device,
    find_nodes,
    log_ignored,
    reader_for,
)
from cntkpy.trainers.parameters.sgd import EvaluationParameters

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext
    from cntkpy.networks.graph.network import Node
    from cntkpy.trainers.step.context import Callback


ENTRY = Entry(
    "action",
    ("bnstat",),
    parameters="cntkpy.commands.actions.bn_statistics:BNStatisticsParameters",
    factory="cntkpy.commands.actions.bn_statistics:bn_statistics",
    traits=frozenset({"builds", "evaluates"}),
    example="bn = [ action = bnstat ; modelPath = m ; reader = [...] ]",
)


class BNStatisticsParameters(EvaluationParameters):
    """`action=bnstat`: estimates the means and variances of batch normalisation again, as averages over minibatches."""

    model_path = Parameter("modelPath", PATH, help="The model file.")
    new_model_path = Parameter("newModelPath", PATH, default=None, help="Where the new model goes; modelPath.PBN.")
    reader = Parameter("reader", SECTION, help="The data.")
    minibatch_size = Parameter("minibatchSize", per_epoch(COUNT), default="40960", help="Samples per minibatch.")
    iterations = Parameter("itersPerNode", COUNT, default="30", help="Minibatches for each node.")
    eval_nodes = Parameter(
        "evalNodeNames", array(TEXT), default="()", help="Only nodes below these; all evaluation and criterion nodes."
    )
    trace_level = Parameter("traceLevel", INTEGER, default="0", help="0: results only; 1: more.")


def bn_statistics(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = BNStatisticsParameters(section)
    path = str(p.new_model_path or f"{p.model_path}.PBN")
    for name, number in (("itersPerNode", p.iterations), ("minibatchSize", p.minibatch_size[0])):
        if number < 1:
            raise p.error(name, f"{name} is at least 1")
    log_ignored(p, context.action, context)
    choose_device(context)
    network = build_or_load(section, context)
    reader = reader_for(section, "reader", context, traceLevel=str(p.trace_level))
    roots = find_nodes(network, p.eval_nodes)
    if not roots:
        roots = [node for group in ("evaluation", "criterion", "output") for node in network.groups[group]]

    from cntkpy.networks.files.model_file import save_model
    from cntkpy.trainers.evaluation.bn_statistics import estimate_statistics
    from cntkpy.trainers.monitors.callbacks import traces

    def watch(node: Node) -> list[Callback]:
        return traces(p, network, [node], training=True)

    estimate_statistics(network, roots, reader, p.minibatch_size[0], p.iterations, context.progress, watch)
    save_model(path, network)
