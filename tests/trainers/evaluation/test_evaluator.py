"""The compiled evaluation: how often it is compiled."""

import numpy as np

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
