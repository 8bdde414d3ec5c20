"""The values of functions for some data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix  # pyright: ignore[reportMissingTypeStubs]

from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.free import Sizes, sized_model
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.graph import DRAW_SEEDS, names_seed
from cntkpy.networks.builders.python.functions.per_sample import per_sample
from cntkpy.networks.compile.evaluate import compile_network, network_parameters, network_state
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.host.kinds import raise_failure
from cntkpy.networks.nodes.sampling.kinds import DRAWN, draws_without_seed, first_draw
from cntkpy.readers import Value
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.fronts.cntk2.data import Arguments, inputs_of, needs_whole
from cntkpy.trainers.fronts.cntk2.free import FreeSizes
from cntkpy.trainers.fronts.cntk2.padded_sizes import PaddedSizes
from cntkpy.trainers.fronts.cntk2.same_shapes import SameShapes
from cntkpy.trainers.fronts.cntk2.samples import Samples, made_samples
from cntkpy.trainers.fronts.cntk2.timing import LastMinibatch, is_node_timing
from cntkpy.trainers.fronts.cntk2.training_functions import TrainingFunctions
from cntkpy.trainers.step.context import StepContext, minibatch_of
from cntkpy.trainers.step.feed import Batcher
from cntkpy.trainers.step.stack import Stack

if TYPE_CHECKING:
    from jax import Array

T = TypeVar("T")
Key = tuple[object, ...]
"""Functions, and sizes that only data say."""


@dataclass
class Draws:
    """Numbers of draws of random numbers by functions; those of several sizes count together.

    Attributes:
        counts: how often their random nodes have drawn, by the names of the network's state: of networks without
            inputs, and of those of several sizes.
        passes: how often they were computed in training mode; each time with other random numbers.
        trained: how often their random nodes have drawn in training mode, by the names of the network's state.
        last: of those of several sizes, what has computed them for the last data.
    """

    counts: dict[str, Any] = field(default_factory=dict[str, Any])
    passes: int = 0
    trained: dict[str, Any] = field(default_factory=dict[str, Any])
    last: Values | None = None

    @cached_property
    def number(self) -> int:
        """Return the number of the functions among those of the program that draw without a seed."""
        return DRAW_SEEDS.next() - 1

    def begin(self, network: ValidatedNetwork) -> None:
        """Let random nodes without a seed draw other numbers than those of other functions."""
        names = [node.name + DRAWN for node in network.nodes.values() if draws_without_seed(node)]
        if names:
            first = dict.fromkeys(names, first_draw(self.number))
            self.counts, self.trained = first | self.counts, first | self.trained


class Values:
    """Computes some functions, compiled once.

    Args:
        outputs: the functions.
        first: nodes that come before those of the functions in the order of computation, and so in that of random
            numbers.
        sizes: of the free nodes below the functions.
        draws: those of the functions with other sizes.
    """

    def __init__(
        self,
        outputs: Sequence[Function],
        first: Sequence[NodeValue] = (),
        sizes: Sizes | None = None,
        draws: Draws | None = None,
    ) -> None:
        self.outputs = list(outputs)
        roots = [per_sample(function.root) for function in self.outputs]
        criteria = [root is not function.root for root, function in zip(roots, self.outputs, strict=True)]
        every = list(dict.fromkeys([*first, *roots]))
        self._graph, self._sized = sized_model(every, {"output": roots}, sizes)
        self._first = [self._node(root).name for root in first]
        self._nodes = [self._node(root) for root in roots]
        scalars = {node for node, is_scalar in zip(self._nodes, criteria, strict=True) if is_scalar}
        self._made = made_samples(self._graph.network, self._nodes)
        """The samples of minibatches that the network makes itself; 0: none."""
        whole = needs_whole(self._graph.nodes.values())
        self.arguments = Arguments(inputs_of(self._graph, self._nodes), self._graph.network.dtype, whole, self._made)
        pairs = list(zip(self.outputs, self._nodes, strict=True))
        self.samples = Samples(self._graph.network, pairs, scalars, self.arguments, self._made)
        """Finds the samples of the functions."""
        self._assignments = [
            (calls.inputs_of(value)[0], node) for value, node in self._graph.nodes.items() if node.kind.name == "Assign"
        ]
        """The parameters that `assign` gives values, and the nodes of these."""
        self._computed = list(dict.fromkeys([*self._nodes, *(node for _, node in self._assignments)]))
        dense = {known.function: known.node.name for known in self.arguments.inputs if known.is_dense}
        is_plain = len(dense) == len(self.arguments.inputs)
        self._same = SameShapes(dense if is_plain else {}, self._graph.network.dtype)
        self._evaluator: Evaluator | None = None
        self._batcher: Batcher | None = None
        self._sizes = PaddedSizes()
        self._version = -1
        """The version of the graph whose values the evaluator has."""
        self._changing = 0
        """Number of constants that were known to change when programs were compiled."""
        self.draws = draws or Draws()
        self.draws.begin(self._graph.network)
        self.last = LastMinibatch()
        """The data of the last computation, see `print_times`."""

    @property
    def network(self) -> ValidatedNetwork:
        """Return the network of the functions."""
        return self._graph.network

    @cached_property
    def names_seed(self) -> bool:
        """Return whether the functions depend on one that draws with a seed of its own, whatever else draws."""
        return names_seed(output.root for output in self.outputs)

    @cached_property
    def have_sparse_values(self) -> list[bool]:
        """Return for each function whether its values come as sparse matrices."""
        return [function.is_output and function.is_sparse for function in self.outputs]

    def _node(self, value: NodeValue) -> Node:
        node = self.node_of(value)
        assert node is not None
        return node

    def node_of(self, value: NodeValue) -> Node | None:
        """Return the node of a value of a program; None: the functions do not depend on it."""
        return self._graph.nodes.get(value) or self._graph.nodes.get(self._sized.of(value))

    def __call__(self, data: object) -> list[Any]:
        """Return the values of the functions, in their order."""
        if not self.arguments.inputs:
            self._load()
            return self._constants()
        stack, results = self._results(data)
        first = {name: np.asarray(value)[0] for name, value in results.items()}
        raise_failure()
        self.assign(first)
        return [self.samples.of(node, first, stack) for node in self._nodes]

    def _results(self, data: object) -> tuple[Stack, Mapping[str, Array]]:
        """Return the stack of data, and the values of nodes.

        Data of shapes that were there before are read in their own memory if possible: they are computed before the
        call ends.
        """
        arrays = None if is_node_timing() else self._same.by_input(data)
        self._load()
        evaluator, known = self._evaluator, None if arrays is None else self._same.find(arrays[1])
        if arrays is None or known is None or evaluator is None:
            stack = self.stack(data, resumes=True)
            if arrays is not None:
                self._same.keep(arrays[1], stack)
            return stack, self._run(stack)
        self.arguments.pieces.forget()
        inputs = known.inputs(arrays[0])
        if known.evaluate is None or self._graph.version != self._version:
            stack = known.stack_of(inputs)
            results = self._run(stack)
            known.evaluate = evaluator.again(stack) or (lambda inputs: self._run(known.stack_of(inputs)))
            return stack, results
        return known.stack, known.evaluate(inputs)

    def _run(self, stack: Stack) -> Mapping[str, Array]:
        """Return the values of nodes; programs take the parameters of now."""
        evaluator, counts = self._evaluator, self.draws.counts
        assert evaluator is not None
        is_changed = self._graph.version != self._version
        if is_changed:
            self._same.forget_parameters()
            self._version = self._graph.version
        evaluator.load_again(counts, is_changed)
        results = evaluator.run(stack)
        if counts or self._sized.copies:
            self.draws.counts = evaluator.drawn
        return results

    def stack(self, data: object, resumes: bool = False) -> Stack:
        """Data as the compiled network takes them; the network has the parameters of now.

        Args:
            data: the data.
            resumes: sequences may resume from the call before.
        """
        self._load()
        if self._evaluator is None:
            self._evaluator = Evaluator(self._graph.network, self._computed, summed=False)
            self._version = self._graph.version
        minibatch = self.arguments.minibatch(data, resumes=resumes)
        self.last.keep(minibatch)
        size = self._sizes.of(minibatch.num_samples)
        if self._batcher is None or self._batcher.minibatch_size != size:
            self._batcher = self._evaluator.batcher(size, 1, chosen=0)
        return self._batcher.alone(minibatch)

    def _load(self) -> None:
        """Take the values that parameters have now; drop programs that other values are a part of."""
        self._graph.load()
        self._drop_outdated()

    def _drop_outdated(self) -> None:
        if len(self.network.changing) == self._changing:
            return
        self._changing = len(self.network.changing)
        self._evaluator = self._batcher = None
        self._same.forget_parameters()
        for name in ("training", "_of_constants"):
            vars(self).pop(name, None)

    def batch(self, data: object) -> tuple[Batch, Stack | None]:
        """Data as one minibatch of the compiled network, and as the stack of it; None: there are no inputs."""
        if not self.arguments.inputs:
            self._load()
            return self._batch, None
        stack = self.stack(data)
        return minibatch_of(stack.batch, 0), stack

    @property
    def _batch(self) -> Batch:
        """Return the minibatch of a network without inputs."""
        if not self._made:
            return Batch({})
        zeros = np.zeros((1, self._made), np.int32)
        return Batch({}, zeros == 0, zeros, zeros)

    def _constants(self) -> list[Any]:
        network = self._graph.network
        results, state = self._of_constants(
            network_parameters(network), network_state(network) | self.draws.counts, self._batch
        )
        self.draws.counts = {name: value for name, value in state.items() if name.endswith(DRAWN)}
        raise_failure()
        self.assign(results)
        values = {name: np.asarray(array) for name, array in results.items()}
        return [self.samples.of(node, values, None) for node in self._nodes]

    @cached_property
    def _of_constants(self) -> Callable[..., tuple[dict[str, Array], dict[str, Array]]]:
        """Computes the nodes of functions without inputs."""
        return jax.jit(compile_network(self.network, [node.name for node in self._computed]))

    def assign(self, results: Mapping[str, ArrayLike]) -> None:
        """Let the parameters of `assign` have the values that were computed."""
        for target, node in self._assignments:
            cell_of(target).set_value(np.asarray(results[node.name]))

    @property
    def output_nodes(self) -> list[Node]:
        """Return the node of each function."""
        return self._nodes

    @cached_property
    def training(self) -> TrainingFunctions:
        """The functions in training mode: dropout is active, batch normalisation takes the minibatch's statistics."""
        return TrainingFunctions(self.network, [*self._first, *(node.name for node in self._computed)])

    def in_training_step(self, step: StepContext, names: Mapping[NodeValue, str]) -> list[Any]:
        """Return the values of the functions in a step of training, with its random numbers, before its update.

        Args:
            step: a minibatch about to be trained on.
            names: how the network that is trained calls the nodes of this one.

        Raises:
            KeyError: one of the functions depends on an input that the network does not have.
        """
        renaming = {name: node.name for value, name in names.items() if (node := self.node_of(value)) is not None}
        inlined = {node.name for node in self.network.inlined()}
        self.network.changing.update(renaming[name] for name in step.state if renaming.get(name) in inlined)
        self._drop_outdated()
        batch = step.batch._replace(inputs=_renamed(step.batch.inputs, renaming))
        for item in self.arguments.inputs:
            _ = batch.inputs[item.node.name]
        weights, changed = _renamed(step.weights, renaming), _renamed(step.state, renaming)
        parameters, state = network_parameters(self.network) | weights, network_state(self.network) | changed
        parameters |= {name: array for name, array in changed.items() if name in parameters}  # no learner trains them
        results, _ = self.training.values(parameters, state, batch, step.key, step.settings)
        values = {name: np.asarray(item) for name, item in results.items()}
        raise_failure()
        return [self.samples.of(node, values, step.stack) for node in self._nodes]

    def print_times(self, title: str) -> None:
        """Print the time of each node; with gradients, if the functions were computed in training mode."""
        self._load()
        self.last.print_times(title, self.network, self._nodes, self.draws.passes > 0)

    def keep_statistics(self, state: Mapping[str, ArrayLike]) -> None:
        """Let batch normalisation have its running statistics.

        Args:
            state: the state that a computation in training mode gave.
        """
        for value, node in self._graph.nodes.items():
            for index in () if node.kind.name == "Assign" else node.kind.running:
                source = calls.inputs_of(value)[index]
                cell_of(source).set_value(np.asarray(state[self._graph.nodes[source].name]))
            if node.name + "/samples" in state:
                cell_of(value).samples = int(np.asarray(state[node.name + "/samples"]))


def _renamed(values: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    """Return entries of nodes by other names of these; the part of a name after a slash stays."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        node, slash, suffix = (name, "", "") if name in names else name.rpartition("/")
        if node in names:
            result[names[node] + slash + suffix] = value
    return result


_known: dict[tuple[Any, ...], Values] = {}

_free: dict[tuple[Any, ...], tuple[FreeSizes, Draws]] = {}
"""By functions that have sizes which only data say, what reads these."""

MAX_COMPILED = 32
"""Number of compiled functions that are kept."""


def values_of(outputs: Sequence[Function], data: object) -> Values:
    """Return the values of some functions for some data; they are kept for the next time.

    Args:
        outputs: the functions.
        data: the data; their sizes count where some are known with the data only.
    """
    key = tuple(output.roots for output in outputs)
    values = _known.get(key)
    if values is not None:
        return values
    entry = _free.get(key)
    if entry is None:
        entry = FreeSizes([per_sample(output.root) for output in outputs], longest_of), Draws()
        if not entry[0].nodes:
            return _kept(_known, key, Values(outputs))
        _kept(_free, key, entry)
    free, draws = entry
    sizes = free(data)
    values = _known.get((key, *sizes.values()))
    if values is None:
        values = _kept(_known, (key, *sizes.values()), Values(outputs, sizes=sizes, draws=draws))
    if draws.last is not values:
        values.arguments.pieces.forget()  # no sequence resumes in a network of another size
    draws.last = values
    return values


def _kept(known: dict[Key, T], key: Key, value: T) -> T:
    """Return a value that is kept under a key; the oldest one goes where there are too many."""
    if len(known) >= MAX_COMPILED:
        known.pop(next(iter(known)))
    known[key] = value
    return value


def longest_of(function: Function, data: object) -> int:
    """Return the steps of the longest of the sequences that a function has for some data."""
    sequences = evaluate(function, data, [function])
    return max(map(len, sequences))


def evaluate(function: Function, arguments: object, outputs: Sequence[Function], as_numpy: bool = True) -> Any:
    """Return the values of outputs for some data; see `Function.eval`."""
    arguments = {} if arguments is None else arguments
    values = values_of(outputs, arguments)
    results = values(arguments)
    if not as_numpy:
        results = [
            Value.of_result(value, values.samples.has_batch(node))
            for value, node in zip(results, values.output_nodes, strict=True)
        ]
    else:
        results = [
            _sparse(value) if is_sparse else value
            for is_sparse, value in zip(values.have_sparse_values, results, strict=True)
        ]
    return results[0] if len(outputs) == 1 else dict(zip(outputs, results, strict=True))


def _sparse(value: list[Any] | np.ndarray) -> Any:
    """Return the values of a function as sparse matrices; arrays of other than two axes stay."""
    if not isinstance(value, np.ndarray):
        return [_sparse(array) for array in value]
    return csr_matrix(value) if value.ndim == 2 else value


def print_node_timing(function: Function) -> None:
    """See `Function.print_node_timing`."""
    _, draws = _free.get(tuple(output.roots for output in function.outputs), (None, Draws()))
    (draws.last or values_of(function.outputs, {})).print_times(repr(function))
