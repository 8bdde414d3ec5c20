"""`action = test` (or `eval`): criteria and evaluation nodes of a network on data."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters, ConfigValue
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.declare import COUNT, INTEGER, PATH, SAMPLES, SECTION, TEXT, Parameter, array, per_epoch
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.networks_and_readers import (
    build_or_load,
    choose_device,
    find_nodes,
    log_ignored,
    process_group_of,
    reader_for,
)
from cntkpy.readers.parameters import OrderParameters
from cntkpy.trainers.parameters.sgd import EvaluationParameters

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext
    from cntkpy.networks.graph.network import Node, ValidatedNetwork
    from cntkpy.readers.contracts import MinibatchReader
    from cntkpy.trainers.evaluation.confusion import ConfusionCount
    from cntkpy.trainers.log.text import Total
    from cntkpy.trainers.step.context import Callback

log = logging.getLogger("cntkpy.commands")


ENTRY = Entry(
    "action",
    ("test", "eval"),
    parameters="cntkpy.commands.actions.evaluate:TestParameters",
    factory="cntkpy.commands.actions.evaluate:test",
    traits=frozenset({"builds", "evaluates"}),
    example="test = [ action = test ; modelPath = m ; reader = [...] ]",
)


class TestParameters(EvaluationParameters):
    """`action=test`: evaluates a network on data."""

    __test__ = False  # not a test, whatever pytest thinks of the name

    model_path = Parameter("modelPath", PATH, help="The model file.")
    reader = Parameter("reader", SECTION, help="The data; not randomised unless the section says so itself.")
    eval_nodes = Parameter(
        "evalNodeNames", array(TEXT), default="()", help="Nodes to evaluate; all evaluation and criterion nodes."
    )
    minibatch_size = Parameter(
        "minibatchSize", per_epoch(COUNT), default="40960", minimum=1, help="Samples per minibatch."
    )
    epoch_size = Parameter("epochSize", SAMPLES, default="0", help="Samples to evaluate; 0 is one pass over the data.")
    show_every = Parameter("numMBsToShowResult", COUNT, default="100", help="Minibatches between intermediate lines.")
    show_first = Parameter("firstMBsToShowResult", COUNT, default="0", help="Also a line for the first minibatches.")
    trace_level = Parameter(
        "traceLevel",
        INTEGER,
        default="0",
        help="0: the result only; 1: intermediate lines; 2: also compilations; 3: also shapes.",
    )


def test(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    evaluate_section(TestParameters(section), context)


test.__test__ = False  # type: ignore[attr-defined]


def evaluate_section(p: TestParameters, context: RunContext) -> list[Total]:
    """Evaluate the network of a section on its data, and log the results; one `Total` per node."""
    log_ignored(p, context.action, context)
    choose_device(context)
    network = build_or_load(p.config, context)
    reader = reader_in_order(p, context)
    nodes = evaluation_nodes(network, p.eval_nodes)
    count = _confusion_count(network, nodes, context)
    totals = evaluate_nodes(p, network, nodes, reader, context, [count] if count is not None else [])
    if count is not None:
        log.debug("", extra={"event": {"event": "confusion", **count.values()}})
    return totals


def _confusion_count(network: ValidatedNetwork, nodes: list[Node], context: RunContext) -> ConfusionCount | None:
    """Return the counter of the answers of a classification; None without `logFormat=json`, or with several
    processes, each of which has a part of the data."""
    from cntkpy.trainers.log.events import COUNTED

    if not log.isEnabledFor(COUNTED) or context.link is not None:
        return None
    from cntkpy.trainers.evaluation.confusion import ConfusionCount, classification

    node = classification(nodes)
    return ConfusionCount(network, node) if node is not None else None


def reader_in_order(p: TestParameters, context: RunContext) -> MinibatchReader:
    """Return the reader of a test: in the order of the data, unless its own section says otherwise."""
    settings = {"traceLevel": str(p.trace_level)}
    if not OrderParameters.randomize.stands_in(p.reader):
        settings["randomize"] = "none"
    return reader_for(p.config, "reader", context, None, **settings)


def evaluate_nodes(
    p: TestParameters,
    network: ValidatedNetwork,
    nodes: list[Node],
    reader: MinibatchReader,
    context: RunContext,
    callbacks: Sequence[Callback] = (),
) -> list[Total]:
    """Evaluate nodes as the section says, and log the results; one `Total` per node. `callbacks`: see `evaluate`."""
    from cntkpy.trainers.evaluation.evaluate import EvaluationData, evaluate
    from cntkpy.trainers.evaluation.evaluator import Evaluator
    from cntkpy.trainers.log.nodes import log_shapes
    from cntkpy.trainers.monitors.callbacks import traces
    from cntkpy.trainers.parallel.training import ParallelTraining

    shown = p.trace_level > 0
    parallel = ParallelTraining(process_group_of(context)) if context.link is not None else None
    data = EvaluationData(
        parallel.part_of(reader, always=True) if parallel is not None else reader,
        p.minibatch_size[0],
        p.epoch_size or None,
        context.progress_tracing,
        parallel.evaluating if parallel is not None else None,
    )
    looking = [*traces(p, network, nodes), *callbacks]
    log_shapes(network, nodes, p.trace_level)
    evaluator = Evaluator(network, nodes, callbacks=looking, trace_level=p.trace_level)
    lines = (p.show_every, p.show_first) if shown else (None, 0)
    return evaluate(evaluator, data, *lines, context.progress)


def evaluation_nodes(network: ValidatedNetwork, names: list[ConfigValue]) -> list[Node]:
    """Return the named nodes, or all evaluation nodes followed by all criterion nodes.

    Raises:
        ConfigError: there is no node of a name.
        UserError: if there is nothing to evaluate, or a node has several elements per sample.
    """
    nodes = find_nodes(network, names)
    if not nodes:
        log.info(
            "evalNodeNames are not specified, using all the default evalnodes and training criterion nodes.",
            extra={"plain": True},
        )
        nodes = list(dict.fromkeys([*network.groups["evaluation"], *network.groups["criterion"]]))
    if not nodes:
        raise UserError(
            "NoCriterion",
            "the network has neither evaluation nor criterion nodes",
            hint="name the nodes to evaluate in evalNodeNames",
        )
    for node in nodes:
        if math.prod(node.shape or ()) != 1:
            size = " x ".join(str(n) for n in node.shape or ())
            message = f"node '{node.name}' has shape [{size}]; only nodes with one element per sample can be evaluated"
            hint = "write its values with action=write instead"
            for name in names:
                if str(name).lower() == node.name.lower():
                    raise name.error("BadShape", message, hint)
            raise UserError("BadShape", message, hint=hint)
    return nodes
