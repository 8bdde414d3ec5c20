"""What looks at every minibatch before it is trained on: traces of nodes, the check of gradients."""

from collections.abc import Sequence

from networks.network import Network, Node
from trainers.parameters import SGDParameters
from trainers.step import Watcher


def watchers(p: SGDParameters, network: Network, nodes: Sequence[Node]) -> list[Watcher]:
    """The watchers that the `SGD` section asks for; `nodes` are the criterion and the evaluation nodes."""
    found: list[Watcher] = []
    if p.gradient_check:
        from trainers.gradient_check import GradientCheck

        found.append(GradientCheck(network, nodes, p.significant_figures, p.trace_level > 0))
    if p.trace_real or p.trace_category or p.trace_sparse:
        from trainers.trace import trace

        traced = trace(network, nodes, p.trace_real, p.trace_category, p.trace_sparse, training=True)
        if traced is not None:
            found.append(traced)
    return found
