"""The values of functions for some data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.cntk_config.base.narrowing import is_list
from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls, graph
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.defaults import HALF
from cntkpy.networks.builders.python.functions.free import Sizes, sized_model
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.per_sample import per_sample
from cntkpy.networks.compile.evaluate import LENGTHS, compile_network, network_parameters, network_state
from cntkpy.networks.graph.axes import is_kept
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.host.kinds import raise_failure
from cntkpy.networks.nodes.sampling.kinds import DRAWN
from cntkpy.readers import Value
from cntkpy.readers.data_api.batches import InputAxes, batch_of
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.fronts.cntk2.data import Arguments, inputs_of, needs_whole
from cntkpy.trainers.fronts.cntk2.free import FreeSizes
from cntkpy.trainers.fronts.cntk2.padded_sizes import PaddedSizes
from cntkpy.trainers.fronts.cntk2.timing import LastMinibatch
from cntkpy.trainers.step.batching import Batcher
from cntkpy.trainers.step.context import StepContext, minibatch_of
from cntkpy.trainers.step.stack import Stack

T = TypeVar("T")


@dataclass
class Draws:
    """How many random numbers functions have drawn; those of several sizes count together.

    Attributes:
        counts: how often their random nodes have drawn, by the names of the network's state: of networks without
            inputs, and of those of several sizes.
        passes: how often they were computed in training mode; each time with other random numbers.
        last: of those of several sizes, what has computed them for the last data.
    """

    counts: dict[str, Any] = field(default_factory=dict[str, Any])
    passes: int = 0
    last: Values | None = None


class Values:
    """Computes some functions, compiled once.

    Args:
        outputs: the functions.
        first: nodes that come before those of the functions in the order of computation, and so in that of random
            numbers.
        sizes: of the free nodes below the functions.
    """

    def __init__(
        self, outputs: Sequence[Function], first: Sequence[NodeValue] = (), sizes: Sizes | None = None
    ) -> None:
        self.outputs = list(outputs)
        roots = [per_sample(one.root) for one in self.outputs]
        criteria = [root is not one.root for root, one in zip(roots, self.outputs, strict=True)]
        every = list(dict.fromkeys([*first, *roots]))
        self._graph, self._sized = sized_model(every, {"output": roots}, sizes)
        self._first = [self._node(root).name for root in first]
        self._nodes = [self._node(root) for root in roots]
        self._scalars = {node for node, is_one in zip(self._nodes, criteria, strict=True) if is_one}
        self._half = {node for node, one in zip(self._nodes, self.outputs, strict=True) if one.dtype == HALF}
        """Those whose values are of half precision."""
        self._made = made_samples(self._graph.network, self._nodes)
        """The samples of minibatches that the network makes itself; 0: none."""
        whole = needs_whole(self._graph.nodes.values())
        self.arguments = Arguments(inputs_of(self._graph, self._nodes), self._graph.network.dtype, whole, self._made)
        self._half.update(one.node for one in self.arguments.inputs if one.function.dtype == HALF)
        static = {one.function for one in self.arguments.inputs if one.axes.dynamic == 0}
        pairs = zip(self.outputs, self._nodes, strict=True)
        self._single = {
            node
            for one, node in pairs
            if static and static.issuperset(one.arguments) and not _makes_batch(self._graph.network, node)
        }
        """Functions of inputs without dynamic axes only: they have one value for the whole minibatch."""
        self._assignments = [
            (calls.inputs_of(value)[0], node) for value, node in self._graph.nodes.items() if node.kind.name == "Assign"
        ]
        """The parameters that `assign` gives values, and the nodes of these."""
        self._computed = list(dict.fromkeys([*self._nodes, *(node for _, node in self._assignments)]))
        self._evaluator: Evaluator | None = None
        self._batcher: Batcher | None = None
        self._sizes = PaddedSizes()
        self._version = -1
        """The version of the graph whose values the evaluator has."""
        self._changing = 0
        """How many constants were known to change when programs were compiled."""
        self._shapes: dict[Any, Mapping[str, Any]] = {}
        """By shapes of data, what `shapes` has found."""
        self.draws = Draws()
        self.last = LastMinibatch()
        """The data of the last computation, see `print_times`."""

    @property
    def network(self) -> ValidatedNetwork:
        """The network of the functions."""
        return self._graph.network

    def _node(self, value: NodeValue) -> Node:
        found = self.node_of(value)
        assert found is not None
        return found

    def node_of(self, value: NodeValue) -> Node | None:
        """The node of a value of a program; None: the functions do not depend on it."""
        return self._graph.nodes.get(value) or self._graph.nodes.get(self._sized.of(value))

    def __call__(self, given: Any) -> list[Any]:
        """The values of the functions, in their order."""
        if not self.arguments.inputs:
            self._load()
            return self._constants()
        stack = self.stack(given, resumes=True)
        evaluator, counts = self._evaluator, self.draws.counts if self._sized.copies else None
        assert evaluator is not None
        evaluator.load_again(counts, self._graph.version != self._version)
        self._version = self._graph.version
        found = evaluator.run(stack)
        if counts is not None:
            self.draws.counts = evaluator.drawn
        first = {name: np.asarray(value)[0] for name, value in found.items()}
        raise_failure()
        self._assign(first)
        return [self.samples(node, first, stack) for node in self._nodes]

    def stack(self, given: Any, resumes: bool = False) -> Stack:
        """Data as the compiled network takes them; the network has the parameters of now.

        Args:
            given: the data.
            resumes: sequences may resume from the call before.
        """
        self._load()
        if self._evaluator is None:
            self._evaluator = Evaluator(self._graph.network, self._computed, summed=False)
            self._version = self._graph.version
        minibatch = self.arguments.minibatch(given, resumes=resumes)
        self.last.keep(minibatch)
        size = self._sizes.of(minibatch.num_samples)
        if self._batcher is None or self._batcher.minibatch_size != size:
            self._batcher = self._evaluator.batcher(size, 1, chosen=0)
        return next(iter(self._batcher.stacks(iter([minibatch]), lambda number: True)))

    def _load(self) -> None:
        """Take the values that parameters have now; drop programs that other values are a part of."""
        self._graph.load()
        self._drop_outdated()

    def _drop_outdated(self) -> None:
        if len(self.network.changing) == self._changing:
            return
        self._changing = len(self.network.changing)
        self._evaluator = self._batcher = None
        for name in ("in_training", "with_gradients", "_of_constants"):
            vars(self).pop(name, None)

    def batch(self, given: Any) -> tuple[Batch, Stack | None]:
        """Data as one minibatch of the compiled network, and as the stack of it; None: there are no inputs."""
        if not self.arguments.inputs:
            self._load()
            return self._batch, None
        stack = self.stack(given)
        return minibatch_of(stack.batch, 0), stack

    @property
    def _batch(self) -> Batch:
        """The minibatch of a network without inputs."""
        if not self._made:
            return Batch({})
        zeros = np.zeros((1, self._made), np.int32)
        return Batch({}, zeros == 0, zeros, zeros)

    def _constants(self) -> list[Any]:
        network = self._graph.network
        found, state = self._of_constants(
            network_parameters(network), network_state(network) | self.draws.counts, self._batch
        )
        self.draws.counts = {name: value for name, value in state.items() if name.endswith(DRAWN)}
        raise_failure()
        self._assign(found)
        values = {name: np.asarray(one) for name, one in found.items()}
        return [self.samples(node, values, None) for node in self._nodes]

    @cached_property
    def _of_constants(self) -> Callable[..., Any]:
        """Computes the nodes of functions without inputs."""
        return jax.jit(compile_network(self.network, [node.name for node in self._computed]))

    def _assign(self, found: Mapping[str, Any]) -> None:
        """Let the parameters of `assign` have the values that were computed."""
        for target, node in self._assignments:
            cell_of(target).set_value(np.asarray(found[node.name]))

    def _scalar(self, node: Node, values: NDArray[Any]) -> NDArray[Any]:
        """The values of a criterion have the shape () for each sample."""
        return values.reshape(values.shape[:2] if node.has_layout else ()) if node in self._scalars else values

    @property
    def output_nodes(self) -> list[Node]:
        """The node of each function."""
        return self._nodes

    @cached_property
    def in_training(self) -> Callable[..., Any]:
        """Computes the nodes in training mode: `f(parameters, state, batch, key, settings) -> (values, state)`.

        Dropout is active, batch normalisation takes the statistics of the minibatch.
        """
        return jax.jit(self._training_function)

    @cached_property
    def with_gradients(self) -> Callable[..., Any]:
        """The same and gradients, in one program: `f(variables, roots, given) -> (values, state, gradients)`.

        `variables` has parameters and inputs to differentiate by, `roots` by node a factor for each element of its
        value, `given` the arguments of `in_training`; its parameters need not have those of `variables`.
        """
        compute = self._training_function

        def function(variables: tuple[Any, Any], roots: Mapping[str, Any], given: tuple[Any, ...]) -> Any:
            parameters, state, batch, *more = given

            def outputs(own: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
                inputs = batch._replace(inputs={**batch.inputs, **data})
                found, after = compute({**parameters, **own}, state, inputs, *more)
                return {name: found[name] for name in roots}, (found, after)

            _, pull_back, (found, after) = jax.vjp(outputs, *variables, has_aux=True)
            return found, after, pull_back(roots)

        return jax.jit(function)

    def shapes(self, given: tuple[Any, ...]) -> Mapping[str, Any]:
        """The shapes and types of what `in_training` computes, by name, without computing it.

        Args:
            given: its arguments.
        """
        key = tuple(np.shape(array) for array in jax.tree.leaves(given[2]))
        if key not in self._shapes:
            self._shapes[key] = jax.eval_shape(self.in_training, *given)[0]
        return self._shapes[key]

    @property
    def _training_function(self) -> Callable[..., Any]:
        names = dict.fromkeys([*self._first, *(node.name for node in self._computed)])
        return compile_network(self.network, names, training=True)

    def in_training_step(self, step: StepContext, names: Mapping[NodeValue, str]) -> list[Any]:
        """The values of the functions in a step of training, with its random numbers, before its update.

        Args:
            step: a minibatch about to be trained on.
            names: how the network that is trained calls the nodes of this one.

        Raises:
            KeyError: one of the functions depends on an input that the network does not have.
        """
        own = {name: node.name for value, name in names.items() if (node := self.node_of(value)) is not None}
        inlined = {node.name for node in self.network.inlined()}
        self.network.changing.update(own[name] for name in step.state if own.get(name) in inlined)
        self._drop_outdated()
        batch = step.batch._replace(inputs=_renamed(step.batch.inputs, own))
        for one in self.arguments.inputs:
            _ = batch.inputs[one.node.name]
        parameters = network_parameters(self.network) | _renamed(step.weights, own)
        state = network_state(self.network) | _renamed(step.state, own)
        found, _ = self.in_training(parameters, state, batch, step.key, step.settings)
        values = {name: np.asarray(one) for name, one in found.items()}
        raise_failure()
        return [self.samples(node, values, step.stack) for node in self._nodes]

    def print_times(self, what: str) -> None:
        """Print how long each node takes; with gradients, if the functions were computed in training mode."""
        self._load()
        self.last.print_times(what, self.network, self._nodes, self.draws.passes > 0)

    def keep_statistics(self, state: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Let batch normalisation have its running statistics, and parameters what is assigned to them.

        Args:
            state: the state that a computation in training mode gave.
            found: its values.
        """
        self._assign(found)
        for value, node in self._graph.nodes.items():
            for index in () if node.kind.name == "Assign" else node.kind.running:
                source = calls.inputs_of(value)[index]
                cell_of(source).set_value(np.asarray(state[self._graph.nodes[source].name]))
            if node.name + "/samples" in state:
                cell_of(value).samples = int(np.asarray(state[node.name + "/samples"]))

    def cells(self, node: Node, given: Any, found: Mapping[str, Any], stack: Stack | None) -> NDArray[Any]:
        """What `samples` makes samples of, for samples in the form that it gives; padding is 0.

        Args:
            node: the node.
            given: an array, or a list of sequences, like the value of the node.
            found: values of the computation that the samples belong to, the node's among them.
            stack: its data; None: there are none.

        Raises:
            ArgumentError: it has another number of sequences or steps, or samples of another shape.
        """
        value = np.asarray(found[node.name])
        cells, numbers = np.zeros(value.size, value.dtype), np.arange(value.size).reshape(value.shape)
        places: Any = self.samples(node, {**found, node.name: numbers}, stack)
        dynamic = 2 if is_list(places) else int(self.has_batch(node))
        own: Any = places if dynamic else [places]
        shape = own[0].shape[1:] if dynamic == 2 else own[0].shape
        axes = InputAxes(f"gradient of '{node.name}'", shape, dynamic)
        batch = given.read(axes) if isinstance(given, Value) else batch_of(given, axes)
        lengths = [len(one) for one in own] if dynamic == 2 else [1] * len(own)
        if batch.lengths.tolist() != lengths or batch.cells is None:
            steps, expected = shorten(str(batch.lengths.tolist())), shorten(str(lengths))
            message = f"the gradient of '{node.name}' has sequences of {steps} steps, its value of {expected}"
            raise ArgumentError(message, "np.ones_like(value)")
        for one, length, place in zip(batch.cells, lengths, own, strict=True):
            cells[place.reshape(-1)] = one[:length].astype(value.dtype).reshape(-1)
        return cells.reshape(value.shape)

    def has_batch(self, node: Node) -> bool:
        """Whether a node has values for each sequence of a minibatch, not one for the whole."""
        several = bool(self.arguments.inputs or self._made) and not self.arguments.is_static
        return several and node.has_layout and node not in self._single

    def samples(self, node: Node, found: Mapping[str, Any], stack: Stack | None) -> Any:
        """The samples of a node without padding: an array, or a list of sequences.

        Args:
            node: the node.
            found: its value by its name, and what else the computation gave.
            stack: the data; None: there are none.
        """
        array = self._scalar(node, found[node.name])
        if node in self._half and array.dtype.kind == "f":
            array = array.astype(HALF)
        if stack is None and node.has_layout and self._made:
            if not is_kept(node.axis):
                return array[0]
            lengths = found[f"{node.axis}{LENGTHS}"].tolist()
            return [array[:length, slot] for slot, length in enumerate(lengths)]
        if not node.has_layout or stack is None:
            return array
        layout = stack.layout(0, node, found)
        several = any(one.sequence for one in self.arguments.inputs) or is_kept(node.axis)
        if self.arguments.is_static or node in self._single:
            return array[0, 0]
        if node.axis == graph.ONE_STEP or (layout.T == 1 and not several):
            return array[0, layout.sequences[:, 1]]
        return [array[max(begin, 0) : end, slot] for _, slot, begin, end in layout.sequences.tolist()]


def made_samples(network: ValidatedNetwork, nodes: Sequence[Node]) -> int:
    """The samples of the minibatches that a network makes of values without a minibatch axis; 0: it makes none."""
    found = {(one.input(0).shape or (0,))[-1] for one in network.below(list(nodes)) if one.operation == "ToBatch"}
    if len(found) > 1:
        sizes = " and ".join(map(str, sorted(found)))
        raise ArgumentError(
            f"to_batch makes minibatches of {sizes} samples of one function", "give all as many samples"
        )
    return next(iter(found), 0)


def _makes_batch(network: ValidatedNetwork, node: Node) -> bool:
    return any(one.operation == "ToBatch" for one in network.below([node]))


def _renamed(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """What belongs to nodes, by other names of these; what follows a slash in a name stays."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        node, slash, rest = (name, "", "") if name in names else name.rpartition("/")
        if node in names:
            found[names[node] + slash + rest] = value
    return found


_known: dict[tuple[Any, ...], Values] = {}

_free: dict[tuple[Any, ...], tuple[FreeSizes, Draws]] = {}
"""By functions that have sizes which only data say, what reads these."""

MAX_COMPILED = 32
"""So many compiled functions are kept."""


def values_of(outputs: Sequence[Function], given: Any) -> Values:
    """What computes some functions for some data; it is kept for the next time.

    Args:
        outputs: the functions.
        given: the data; their sizes count where some are known with the data only.
    """
    key = tuple(one.roots for one in outputs)
    values = _known.get(key)
    if values is not None:
        return values
    found = _free.get(key)
    if found is None:
        found = FreeSizes([per_sample(one.root) for one in outputs], longest_of), Draws()
        if not found[0].nodes:
            return _kept(_known, key, Values(outputs))
        _kept(_free, key, found)
    free, draws = found
    sizes = free(given)
    values = _known.get((key, *sizes.values()))
    if values is None:
        values = _kept(_known, (key, *sizes.values()), Values(outputs, sizes=sizes))
        values.draws = draws
    if draws.last is not values:
        values.arguments.pieces.forget()  # no sequence resumes in a network of another size
    draws.last = values
    return values


def _kept(known: dict[tuple[Any, ...], T], key: tuple[Any, ...], value: T) -> T:
    """A value that is kept under a key; the oldest one goes where there are too many."""
    if len(known) >= MAX_COMPILED:
        known.pop(next(iter(known)))
    known[key] = value
    return value


def longest_of(function: Function, given: Any) -> int:
    """The steps of the longest of the sequences that a function has for some data."""
    found = evaluate(function, given, [function])
    return max(map(len, found))


def evaluate(function: Function, arguments: Any, outputs: Sequence[Function], as_numpy: bool = True) -> Any:
    """The values of outputs for some data; see `Function.eval`."""
    arguments = {} if arguments is None else arguments
    values = values_of(outputs, arguments)
    found = values(arguments)
    if not as_numpy:
        found = [
            Value.of_result(one, values.has_batch(node)) for one, node in zip(found, values.output_nodes, strict=True)
        ]
    return found[0] if len(outputs) == 1 else dict(zip(outputs, found, strict=True))


def print_node_timing(function: Function) -> None:
    """See `Function.print_node_timing`."""
    _, draws = _free.get(tuple(one.roots for one in function.outputs), (None, Draws()))
    (draws.last or values_of(function.outputs, {})).print_times(repr(function))
