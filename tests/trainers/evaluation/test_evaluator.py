"""The compiled evaluation: how often it is compiled."""

from functools import partial

import numpy as np

from cntkpy.networks import nodes
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network
from cntkpy.networks.nodes import operation
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.evaluation.evaluator import Evaluator


def minibatch(samples: int) -> Minibatch:
    """Single frames."""
    sequences = np.array([[k, k, 0, 1] for k in range(samples)], np.int64)
    return Minibatch({"x": np.ones((1, samples, 3), np.float32)}, {"x": Layout(1, samples, sequences)})


def test_a_network_with_state_is_compiled_once() -> None:
    """The state that the first stack finds is of the same kind as what it leaves to the next."""
    network = Network("float")
    x = network.add("x", operation("InputValue"), shape=(3,))
    frozen = network.add("frozen", operation("LearnableParameter"), shape=(3,), value=np.full(3, 2, np.float32))
    frozen.learning_rate_multiplier = 0.0
    total = network.add("total", operation("SumElements"), [network.add("p", operation("Plus"), [x, frozen])])
    evaluator = Evaluator(network.validate(), [total])
    for _ in range(2):
        evaluator.load()
        stacks = evaluator.batcher(4, capacity=2).stacks(iter([minibatch(4) for _ in range(5)]), lambda number: False)
        assert sum(np.asarray(evaluator.run(stack))[: len(stack.minibatches)].sum() for stack in stacks) == 5 * 36
    assert evaluator.compilations == 1


def test_labels_of_classes_are_looked_at_in_each_call() -> None:
    """Data that are checked before they are computed with have no evaluation without checks."""
    network = Network("float")
    make = partial(nodes.create, network)
    labels, hidden, classes = (
        make("InputValue", name, (), {"dims": (size,)}) for name, size in (("l", 4), ("h", 3), ("c", 2))
    )
    weights = make("LearnableParameter", "w", (), {"dims": (3, 5)})
    network.initialize(weights, SeedCounter())
    cost = make("ClassBasedCrossEntropyWithSoftmax", "cost", (labels, hidden, weights, classes))
    score = make("TransposeTimes", "score", (weights, hidden))
    layout = Layout(1, 1, np.array([[0, 0, 0, 1]]))
    streams = {
        "l": np.zeros((1, 1, 4), np.float32),
        "h": np.full((1, 1, 3), 2, np.float32),
        "c": np.zeros((1, 1, 2), np.float32),
    }
    whole = network.validate()
    for node, is_checked in ((cost, True), (score, False)):
        evaluator = Evaluator(whole, [node], summed=False)
        stack = evaluator.batcher(1, 1, chosen=0).alone(Minibatch(streams, dict.fromkeys(streams, layout)))
        evaluate = evaluator.again(stack)
        assert (evaluate is None) is is_checked
    assert evaluate is not None
    inputs = {name: 3 * array for name, array in stack.batch.inputs.items()}
    np.testing.assert_allclose(
        np.asarray(evaluate(inputs)["score"]).ravel(), 6 * np.asarray(weights.value).reshape(5, 3).sum(1), rtol=1e-6
    )
