"""The compiled part of evaluation: many minibatches per call, one compilation per padded shape."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import partial
from typing import Any

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.compile.evaluate import (
    LENGTHS,
    PROBLEM,
    Settings,
    compile_network,
    kept_lengths,
    network_parameters,
    network_state,
    node_total,
)
from cntkpy.networks.compile.executables import Program
from cntkpy.networks.compile.recurrence import CARRIED
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.networks.nodes.sampling.kinds import DRAWN
from cntkpy.trainers.step.buckets import EVALUATION_BUCKETS, Buckets
from cntkpy.trainers.step.class_labels import class_label_check, labelled
from cntkpy.trainers.step.context import Callback, StepContext, carry, in_words, minibatch_of, with_row
from cntkpy.trainers.step.feed import CAPACITY, Batcher, PlacedStack
from cntkpy.trainers.step.memory import HostArray, has_own_memory, lend, place
from cntkpy.trainers.step.sequence_problems import check_sequences
from cntkpy.trainers.step.stack import Stack

Array = Any


@dataclass
class Evaluator:
    """The compiled evaluation of some nodes.

    Attributes:
        network: the network.
        nodes: what to evaluate.
        summed: give the sum of every node over a minibatch; otherwise the values of every minibatch.
        callbacks: called with every stack before it is evaluated; stacks must then be of one minibatch.
        trace_level: from 2 on, every compilation is logged.
        start: the network with the values to begin with; None: this one.
    """

    network: ValidatedNetwork
    nodes: Sequence[Node]
    summed: bool = True
    callbacks: Sequence[Callback] = ()
    trace_level: int = 0
    start: InitVar[ValidatedNetwork | None] = None

    def __post_init__(self, start: ValidatedNetwork | None) -> None:
        self._function = compile_network(self.network, [node.name for node in self.nodes])
        self._check = class_label_check(self.network, self.nodes)
        names = [node.name for node in self.nodes]
        self._compiled = Program(
            self._run,
            (self.network, names, self.summed),
            describe=_in_words,
        )
        self.buckets = Buckets()
        self.load(start)

    def load(self, network: ValidatedNetwork | None = None) -> None:
        """Take the values of a network's nodes, and start with new sequences.

        Args:
            network: this one with other values; None: this one.
        """
        network = network or self.network
        self._done = 0
        # Arrays of JAX, as those that a stack leaves: those of NumPy would need a program of their own, and every call
        # would copy them.
        self._parameters: dict[str, Any] = jax.device_put(network_parameters(network), may_alias=True)
        self._start: dict[str, Any] = jax.device_put(network_state(network), may_alias=True)
        self._state = dict(self._start)

    def load_again(self, drawn: Mapping[str, Array] | None = None, changed: bool = True) -> None:
        """Take values as `load`, but go on with random numbers, and with activations of sequences that resume.

        Args:
            drawn: how often random nodes have drawn numbers, where another evaluator counts; None: as here.
            changed: whether the network's nodes have other values than at the last time.
        """
        kept = {name: value for name, value in self._state.items() if name.endswith((DRAWN, CARRIED))}
        kept.update(drawn or {})
        if changed:
            self.load()
        self._done, self._state = 0, self._start | kept

    @property
    def drawn(self) -> dict[str, Array]:
        """Return the numbers of draws of random nodes."""
        return {name: value for name, value in self._state.items() if name.endswith(DRAWN)}

    @property
    def state(self) -> Mapping[str, Array]:
        """Return the changes of the network itself, by name; see `cntkpy.networks.compile.evaluate.network_state`."""
        return self._state

    @property
    def compilations(self) -> int:
        """Return the number of compilations of the evaluation so far."""
        return self._compiled.shapes

    def batcher(self, minibatch_size: int, capacity: int = CAPACITY, chosen: int = EVALUATION_BUCKETS) -> Batcher:
        """Return the batcher that pads and stacks minibatches for this evaluator."""
        options: dict[str, Any] = {
            "buckets": self.buckets,
            "capacity": capacity,
            "trace_level": self.trace_level,
            "chosen": chosen,
        }
        options["hurries"] = False  # nothing waits for the start of an evaluation
        return Batcher.of(self.network, self.nodes, minibatch_size, **options)

    @property
    def copies(self) -> bool:
        """Return whether `place` begins a copy to the device, during which the device computes something else."""
        return has_own_memory()

    def place(self, stack: Stack) -> PlacedStack:
        """Return a stack as `run` takes it; a copy to the device is begun, not waited for."""
        self._check(stack.batch)
        return PlacedStack(stack, place(stack.batch, len(stack.minibatches), self.copies))

    def run(self, stack: Stack | PlacedStack) -> Any:
        """Sums as `CompiledStep.run`, or by node the stacked values (minibatches, T, S, ...), with padding."""
        stack, batch = stack if isinstance(stack, PlacedStack) else self.place(stack)
        self._state = carry(self.network, self._state, stack)
        self._done += len(stack.minibatches)
        if self.callbacks:
            context = StepContext.of(stack, 0, self._done, self._parameters, self._state, None, Settings())
            for callback in self.callbacks:
                callback(context)
        self._state, result = self._compiled(self._parameters, self._state, batch, len(stack.minibatches))
        check_sequences(self.network, self._state)
        return result

    def again(self, stack: Stack) -> Callable[[Mapping[str, HostArray]], dict[str, Array]] | None:
        """Return what does the same as `run`, of other data in the shapes and the layout of a stack.

        Values of parameters are those of now. A call touches few objects: products have taken the code and the objects
        of Python from the caches of the processor.

        Returns:
            A function of the inputs; None: values depend on minibatches before, or something is checked at each call.
        """
        depends = any(name.endswith((DRAWN, CARRIED, PROBLEM)) for name in self._state) or stack.carried_slots
        if depends or self.callbacks or self.copies or labelled(self.network, self.nodes):
            return None
        inputs: Mapping[str, Any] = stack.batch.inputs
        arguments = self._parameters, self._state, stack.batch, len(stack.minibatches)
        leaves, program = self._compiled.prepared(*arguments)
        places = {name: [leaf is inputs[name] for leaf in leaves].index(True) for name in inputs}
        # Arrays of JAX: a call would copy those of NumPy.
        fixed = [leaf if k in places.values() else jax.device_put(leaf) for k, leaf in enumerate(leaves)]
        is_little = lend(inputs) is inputs

        def evaluate(inputs: Mapping[str, HostArray]) -> dict[str, Array]:
            leaves = fixed.copy()
            arrays: Mapping[str, Any] = inputs if is_little else lend(inputs)
            for name, k in places.items():
                leaves[k] = arrays[name]
            return program(leaves)[1]

        return evaluate

    def _run(self, parameters: dict[str, Array], state: dict[str, Array], batches: Any, count: Array) -> Any:
        def evaluate(state: dict[str, Array], k: Array) -> Any:
            batch = minibatch_of(batches, k)
            values, state = self._function(parameters, state, batch)
            if self.summed:
                totals = [node_total(node, values, batch) for node in self.nodes]
                totals += [jnp.sum(values[str(node.axis) + LENGTHS]) for node in kept_lengths(self.nodes)]
                return state, jnp.stack(totals).astype(self.network.dtype)
            return state, values

        def minibatch(k: Array, carry: Any) -> Any:
            state, results = carry
            state, values = evaluate(state, k)

            def put(every: Array, row: Array) -> Array:
                return with_row(every, k, row)

            return state, jax.tree.map(put, results, values)

        def room(leaf: Any) -> Array:
            return jnp.zeros((capacity, *leaf.shape), leaf.dtype)

        capacity = batches.mask.shape[0]
        if capacity == 1:  # always given; its program is smaller than that of a loop
            state, values_of_first = evaluate(state, 0)
            return state, jax.tree.map(partial(jnp.expand_dims, axis=0), values_of_first)
        columns = len(self.nodes) + len(kept_lengths(self.nodes))
        kind = (
            jax.ShapeDtypeStruct((columns,), self.network.dtype)
            if self.summed
            else jax.eval_shape(evaluate, state, 0)[1]
        )
        results = jax.tree.map(room, kind)
        return jax.lax.fori_loop(0, count, minibatch, (state, results))


def _in_words(parameters: object, state: object, batches: object, count: int) -> str:
    return in_words("evaluation", batches)
