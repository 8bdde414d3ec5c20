"""Callbacks for every minibatch before it is trained on or evaluated: traces of nodes, the check of gradients."""

from collections.abc import Sequence

from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.trainers.parameters.sgd import SGDParameters, TraceParameters
from cntkpy.trainers.step.context import Callback


def callbacks(p: SGDParameters, network: ValidatedNetwork, nodes: Sequence[Node]) -> list[Callback]:
    """Return the callbacks that the `SGD` section asks for; `nodes` are the criterion and the evaluation nodes."""
    watchers: list[Callback] = []
    if p.gradient_check:
        from cntkpy.trainers.monitors.gradient_check import GradientCheck

        watchers.append(GradientCheck(network, nodes, p.significant_figures, p.trace_level > 0))
    return watchers + traces(p, network, nodes, training=True)


def traces(
    p: TraceParameters, network: ValidatedNetwork, roots: Sequence[Node], training: bool = False
) -> list[Callback]:
    """Return the trace of the nodes that a section names, if it names any, and of Trace nodes.

    A name in several lists is of the last.
    """
    watchers: list[Callback] = []
    if any(node.operation == "Trace" for node in network.below(roots)):
        from cntkpy.trainers.monitors.trace_nodes import TraceNodes

        watchers.append(TraceNodes(network, roots, training))
    lists = (("real", p.trace_real), ("category", p.trace_category), ("sparse", p.trace_sparse))
    forms = {str(name): form for form, names in lists for name in names}
    if not forms:
        return watchers
    from cntkpy.trainers.monitors.trace import Trace

    trace = Trace(network, roots, forms, training)
    return [*watchers, trace] if trace.nodes else watchers
