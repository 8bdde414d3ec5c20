"""Which nodes are trained and reported, and how the log describes a training.

See docs/specification/actions-and-training.md 2.2 and 5.3.
"""

import logging
import math
from collections.abc import Iterator

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.networks.graph.network import Network, Node
from cntkpy.networks.graph.validate import check_operands
from cntkpy.networks.nodes import rules
from cntkpy.trainers.parameters.sgd import SGDParameters

log = logging.getLogger("cntkpy.trainers")


def choose_criteria(network: Network, p: SGDParameters) -> tuple[list[Node], list[Node]]:
    """Return the criterion nodes, the first of which is trained, and the evaluation nodes that are reported next to it.

    Further criterion nodes are listed, not reported; neither is an evaluation node that is a criterion, too.

    Raises:
        ConfigError: for a name that the network does not have.
        UserError: if there is no criterion at all, or the one to train or a named one has several elements.
    """
    criteria, evaluations = list(network.groups["criterion"]), list(network.groups["evaluation"])
    if p.train_criterion:
        criteria = [_named(network, p, "trainCriterionNodeName", p.train_criterion)]
    if p.eval_criterion:
        evaluations = [_named(network, p, "evalCriterionNodeName", p.eval_criterion)]
        if message := _several_elements("evaluation", evaluations[0]):
            raise p.error("evalCriterionNodeName", message, _hint(evaluations[0]), kind="NoScalar")
    if not criteria:
        raise UserError(
            "NoCriterion",
            "the network has no training criterion",
            hint='name one in criterionNodes, tag it with tag="criterion", or set trainCriterionNodeName in SGD',
        )
    _check_scalar(criteria[0], p)
    reported = [node for node in evaluations if node not in criteria]
    check_operands(network.below([criteria[0], *reported]))
    return criteria, reported


def _several_elements(role: str, node: Node) -> str:
    """Why a node is not a criterion: the sum of its elements (for each sample, or for the minibatch) means nothing.

    Along one axis, cross entropy and its like have a value for each position of the other axes. These are criteria,
    and their sum is one.
    """
    shape = node.shape or ()
    if math.prod(shape) == 1 or _is_reduced(node):
        return ""
    size = " x ".join(str(n) for n in shape)
    return f"the {role} criterion '{node.name}' = {node.operation} has shape [{size}]; a criterion has one element"


def _hint(node: Node) -> str:
    return f"take a criterion node such as SquareError, or SumElements({node.name}) if the sum is meant"


def _check_scalar(node: Node, p: SGDParameters) -> None:
    """Refuse a criterion of several elements where it was chosen."""
    message, hint = _several_elements("training", node), _hint(node)
    if not message:
        return
    if p.train_criterion:
        raise p.error("trainCriterionNodeName", message, hint, kind="NoScalar")
    if node.span is None:  # the network was loaded
        raise p.error("modelPath", message, hint, kind="NoScalar")
    raise ConfigError("NoScalar", message, node.span, hint)


def _is_reduced(node: Node) -> bool:
    """Return whether a node is computed, element by element, from nothing but reductions along an axis and numbers."""
    reduces, seen, pending = False, {node}, [node]
    while pending:
        current = pending.pop()
        if current.operation == "ReduceElements":
            reduces = True
        elif current.kind.shape in (rules.elementwise, rules.same) and current.inputs:
            pending += [source for source in current.connected if source not in seen]
            seen.update(current.connected)
        elif math.prod(current.shape or ()) != 1 and not current.is_parameter:
            return False
    return reduces


def _named(network: Network, p: SGDParameters, parameter: str, name: str) -> Node:
    try:
        return network.find(name)
    except UserError as error:
        raise p.error(parameter, str(error), hint=error.diagnostic.hint) from None


def gradient_nodes(network: Network, criterion: Node) -> list[Node]:
    """Return the nodes between the trained parameters and the criterion, both included."""
    needs: dict[str, bool] = {}
    order = network.below([criterion])
    changed = True
    while changed:  # more than one pass only where recurrence makes a node depend on a later one
        changed = False
        for node in order:
            value = node.trainable or any(needs.get(source.name, False) for source in node.connected)
            if value != needs.get(node.name, False):
                needs[node.name] = value
                changed = True
    return [node for node in order if needs.get(node.name, False)]


def announce(network: Network, p: SGDParameters, device: str | None) -> list[Node]:
    """Log the criterion and the device; return the criterion to train and the nodes to report.

    Args:
        device: what the log calls it; with `None` the size of the model and the device are not logged.
    """
    if device is not None:
        log.info("")
        log.info("Model has %d nodes. Using %s.", len(network.nodes), device, extra={"plain": True})
    log.info("")
    criteria, evaluations = choose_criteria(network, p)
    for line in describe_criteria(criteria, evaluations):
        log.info("%s", line)
    log.info("")
    for line in describe_parameters(network, criteria[0], p.trace_level > 0):
        log.info("%s", line)
    if not any(node.trainable for node in gradient_nodes(network, criteria[0])):
        message = "WARNING: '%s' depends on no parameter that is trained: the training changes none."
        log.warning(message, criteria[0].name, extra={"plain": True})
    return [criteria[0], *evaluations]


def describe_criteria(criteria: list[Node], evaluations: list[Node]) -> Iterator[str]:
    """Yield the lines that name the criteria; several of a kind get a line each."""
    for singular, plural, nodes in (
        ("Training criterion:   ", "Training criteria:", criteria),
        ("Evaluation criterion: ", "Evaluation criteria:", evaluations),
    ):
        if len(nodes) == 1:
            yield f"{singular}{nodes[0].name} = {nodes[0].operation}"
        elif nodes:
            yield plural
            yield from (f"\t{node.name} = {node.operation}" for node in nodes)


def describe_parameters(network: Network, criterion: Node, detailed: bool) -> Iterator[str]:
    """Yield the number of parameters that are trained; with `detailed`, their names."""
    with_gradient = gradient_nodes(network, criterion)
    trained = sorted((node for node in with_gradient if node.trainable), key=lambda node: node.name)
    elements = sum(math.prod(node.shape or ()) for node in trained)
    if not detailed:
        yield f"Training {elements} parameters in {len(trained)} parameter tensors."
        return
    yield (
        f"Training {elements} parameters in {len(trained)} out of {len(trained)} parameter tensors "
        f"and {len(with_gradient)} nodes with gradient:"
    )
    yield ""
    yield from (f"\t{node.describe()}" for node in trained)
    yield ""
