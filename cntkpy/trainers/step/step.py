"""The compiled part of training: many minibatches per call, one compilation per padded shape.

A training call runs `for each minibatch: forward, backward, update` inside one XLA program; what must be known
outside, the sums of the criteria of every minibatch, comes back as one small array.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.networks.arrays.lazy import jnp
from cntkpy.networks.compile.evaluate import compile_gradient, remembered, start_values, with_values
from cntkpy.networks.compile.executables import Program
from cntkpy.networks.compile.flat import flat_parameters
from cntkpy.networks.compile.recurrence import CARRIED
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.trainers.rules.update_step import Group, Regularisation, Update
from cntkpy.trainers.rules.updates import Rule
from cntkpy.trainers.step.buckets import TRAINING_BUCKETS, Buckets
from cntkpy.trainers.step.class_labels import class_label_check
from cntkpy.trainers.step.context import Callback, StepContext, carry, in_words, random_keys
from cntkpy.trainers.step.feed import CAPACITY, Batcher, PlacedStack
from cntkpy.trainers.step.function import make_step
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.state import EpochSettings, StepInput, StepOptions, TrainState
from cntkpy.trainers.step.state_arrays import Arrays, StateArrays, UpdateState
from cntkpy.trainers.step.strategy import Strategy

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import Float


@dataclass
class CompiledStep:
    """The state of a training, on the devices, and the compiled step that changes it.

    Args:
        network: the network; the values of its nodes are start values only, see `trained_network`.
        nodes: the criterion to train, then the nodes to report.
        rule: the update rule.
        regularisation: clipping, L1, L2, noise.
        targets: changes the data of a stack before it is trained on.
        trace_level: from 2 on, every compilation is logged.
        strategy: how the devices train together.
        groups: of parameters with an update rule of their own, that rule.
        max_minibatch_size: the most samples of a minibatch in any epoch, see `Batcher`.
        buckets: the padded shapes in use.
        values: start values by name, which are emptied; None: those of the network's nodes.
    """

    network: ValidatedNetwork
    nodes: Sequence[Node]
    rule: Rule
    regularisation: Regularisation = field(default_factory=Regularisation)
    targets: Callable[[Stack], Stack] | None = None
    trace_level: int = 0
    strategy: Strategy = field(default_factory=Strategy)
    groups: dict[str, Group] = field(default_factory=dict[str, Group])
    max_minibatch_size: int = 0
    buckets: Buckets = field(default_factory=Buckets)
    values: InitVar[Arrays | None] = None

    def __post_init__(self, values: Arrays | None) -> None:
        self._programs = StepPrograms(self.network, self.nodes, self.rule, self.regularisation, self.groups)
        self._check = class_label_check(self.network, self.nodes)
        self._epoch: EpochSettings | None = None
        self.begin(start_values(self.network) if values is None else values)

    # ---- the state

    def begin(self, values: Arrays, updates: UpdateState | None = None, strategy: Strategy | None = None) -> list[str]:
        """Train from these values on.

        Args:
            values: parameters and the network's state by name, see `start_values`; emptied.
            updates: the arrays of the update rule; emptied. None: fresh ones.
            strategy: how the devices train together; None: as before.

        Returns:
            The parameters whose arrays of the update rule are fresh, because those in `updates` are of another shape
            or another rule.
        """
        self.strategy = strategy = self.strategy if strategy is None else strategy
        self._program = self._programs.of(strategy)
        self._state: TrainState = _nothing()
        self._arrays = self._programs.arrays(strategy)
        return self._use(*self._arrays.start(values, updates))

    def use(self, strategy: Strategy) -> None:
        """Train with another strategy from now on; activations that truncated sequences carry on are dropped."""
        updates = self.updates()
        self.begin(start_values(self.trained_network()), updates, strategy)

    def reload(self, values: Arrays) -> None:
        """Train from other values of the parameters and of the network's state, which are emptied."""
        self._state = self._arrays.with_values(self._state, values)
        self.strategy.averaging.start_from(self._state.weights, self.strategy.averaging.saved_updates())

    def reload_updates(self, updates: UpdateState | None = None) -> list[str]:
        """Train with other arrays of the update rule; see `begin`."""
        return self._use(*self._arrays.with_updates(self._state, updates))

    def drop_updates(self) -> None:
        """Free the arrays of the update rule, so that others can be read from a file; `begin` or `reload_updates`
        comes next."""
        self._state = self._state._replace(updates={})

    def _use(self, state: TrainState, unlike: list[str]) -> list[str]:
        self._state = state
        self._has_waiting_updates = self._arrays.has_waiting_updates(state)
        return unlike

    def forget(self) -> None:
        """Drop the state of a single epoch: activations that truncated sequences carry on, memories of nodes, a
        criterion that was not finite."""
        lasting = {name: value for name, value in self._state.network.items() if not name.endswith(CARRIED)}
        lasting |= {name: self.strategy.placement.place(value) for name, value in remembered(self.network).items()}
        self._state = self._state._replace(network=lasting, finite=self.strategy.placement.flag())

    def finish_epoch(self) -> None:
        """Let all workers have the same weights."""
        self._state = self.strategy.averaging.after_epoch(self._state, self.rule)

    def trained_values(self) -> Arrays:
        """Return the parameters and the network's state by name.

        Nothing is copied where the device's memory is the machine's: drop them before training resumes.
        """
        return self._arrays.values(self._state)

    def trained_network(self) -> ValidatedNetwork:
        """Return the network with the values of now, see `trained_values`."""
        return with_values(self.network, self.trained_values())

    def updates(self, names: Sequence[str] | None = None) -> UpdateState:
        """Return the arrays of the update rule, of all parameters or of some; see `trained_values`."""
        return self._arrays.updates(self._state, names)

    def snapshot(self) -> Arrays:
        """Return everything that changes while training, of all workers, as flat arrays."""
        return self._arrays.snapshot(self._state)

    def restore(self, arrays: Arrays, shapes: dict[str, Any] | None = None) -> None:
        """Go back to a snapshot, which is emptied.

        Args:
            arrays: the snapshot.
            shapes: those of another run (`Buckets.to_json`), so that sums are rounded alike; None: they stay.
        """
        keys = {name: list(update) for name, update in self._state.updates.items()}
        self._state = _nothing()
        self._use(self._arrays.restored(keys, arrays), [])
        if shapes is not None:
            self.buckets = Buckets.from_json(shapes)

    # ---- minibatches

    @property
    def copies(self) -> bool:
        """Return whether `place` begins a copy to the device, during which the device computes something else."""
        return self.strategy.placement.copies

    @property
    def compilations(self) -> int:
        """Return the number of compilations of the step so far."""
        return self._program.shapes

    def batcher(self, minibatch_size: int, capacity: int = CAPACITY, chosen: int = TRAINING_BUCKETS) -> Batcher:
        """Return the batcher that pads and stacks minibatches for this step."""
        like = self._batcher
        options: dict[str, Any] = {"buckets": self.buckets, "capacity": capacity, "chosen": min(chosen, like.chosen)}
        batcher = replace(like, minibatch_size=minibatch_size, trace_level=self.trace_level, **options)
        return self.strategy.placement.batcher(batcher, self.strategy.averaging.start_block())

    @cached_property
    def _batcher(self) -> Batcher:
        """Return the common part of all batchers of this step."""
        return Batcher.of(self.network, self.nodes, 1, chosen=sys.maxsize, max_minibatch_size=self.max_minibatch_size)

    # ---- training

    def at(self, stack: Stack, index: int, number: int) -> StepContext:
        """Return a minibatch, `number` in its epoch (from 1), with the weights and the state as they are now."""
        assert self._epoch is not None
        key, _ = random_keys((self._epoch.seed, number - 1), 0)
        weights, state = self.strategy.placement.local((self._arrays.weights(self._state), self._state.network))
        weights = {name: jnp.asarray(value) for name, value in weights.items()}
        return StepContext.of(stack, index, number, weights, state, key, self._epoch.settings)

    def place(self, stack: Stack) -> PlacedStack:
        """Return a stack as `run` takes it; a copy to the device is begun, not waited for."""
        if self.targets is not None:
            stack = self.targets(stack)
        self._check(stack.batch)
        return PlacedStack(stack, self.strategy.placement.place_batch(stack))

    def run(
        self, stack: Stack | PlacedStack, epoch: EpochSettings, first: int, callbacks: Sequence[Callback] = ()
    ) -> Float[Array, "minibatches nodes"]:
        """Train on a stack of minibatches.

        Args:
            stack: the minibatches, which `place` may have placed before.
            epoch: the scalars of the epoch.
            first: number of the stack's first minibatch in its epoch, for the random masks.
            callbacks: get the context of the minibatch before it is trained on; the stack has one then.

        Returns:
            The sums of the nodes before each update, padded to the capacity of the stack; ready when it is read. After
            them the samples of those nodes among them whose samples are counted when they are computed.
        """
        stack, batch = stack if isinstance(stack, PlacedStack) else self.place(stack)
        strategy = self.strategy
        network = carry(self.network, self._state.network, stack, partial(strategy.placement.place, slots=True))
        self._state = self._state._replace(network=network)
        self._epoch = epoch
        if callbacks:
            context = self.at(stack, 0, first + 1)
            for callback in callbacks:
                callback(context)
        inputs = self._programs.inputs(PlacedStack(stack, batch), epoch, first, strategy)
        options = StepOptions(epoch.frozen, epoch.pieces, epoch.rate_for)
        if self._has_waiting_updates:  # they wait for the program, whose making takes memory
            self._program.find(self._arrays.as_if_placed(self._state), inputs, options)
            self._use(self._arrays.with_placed_updates(self._state), [])
        state, totals = self._program(self._state, inputs, options)
        self._state = strategy.averaging.after_stack(TrainState(*state), stack, self.rule)
        return totals


class StepPrograms:
    """The compiled step of each strategy, with its arrays and its input.

    Args:
        network: the network.
        nodes: the criterion to train, then the nodes to report.
        rule: the update rule.
        regularisation: clipping, L1, L2, noise.
        groups: of parameters with an update rule of their own, that rule.
    """

    def __init__(
        self,
        network: ValidatedNetwork,
        nodes: Sequence[Node],
        rule: Rule,
        regularisation: Regularisation,
        groups: dict[str, Group],
    ) -> None:
        names = [node.name for node in nodes]
        axes = {node.name: node.axis for node in network.nodes.values() if node.kind.layout == "always"}
        self._dtype: np.dtype[Any] = np.dtype(network.dtype)
        self._gaps = not nodes[0].has_layout
        multipliers = {node.name: node.learning_rate_multiplier for node in network.parameters([nodes[0]])}
        update = Update(rule, regularisation, multipliers, groups)
        vectors = flat_parameters(network, names, {name: update.shared(name) for name in multipliers})
        update = update.with_flat(vectors)
        self.arrays = partial(StateArrays, network, list(multipliers), update, vectors)
        """Makes the arrays of a strategy."""
        gradient = compile_gradient(network, names[0], names, vectors)
        random = update.noisy or any(node.kind.random for node in network.nodes.values())
        self._make = partial(make_step, nodes, update, gradient, axes=axes, random=random)
        self._identity = network, names, update
        self._known: dict[Strategy, Program] = {}

    def of(self, strategy: Strategy) -> Program:
        """Return the program of a strategy."""
        if strategy not in self._known:
            placement = strategy.placement
            self._known[strategy] = Program(
                placement.shard(self._make(strategy=strategy)),
                (*self._identity, placement.identity),
                donate=1,
                static=1,
                devices=placement.devices,
                describe=_in_words,
            )
        return self._known[strategy]

    def inputs(self, placed: PlacedStack, epoch: EpochSettings, first: int, strategy: Strategy) -> StepInput:
        """Return the input of the compiled step; see `CompiledStep.run`."""
        return StepInput(
            placed.batch,
            len(placed.stack.minibatches),
            strategy.placement.step_scalars(placed.stack, epoch, self._dtype, self._gaps),
            self._dtype.type(epoch.rate),
            (epoch.seed, first),
            epoch.settings,
            np.asarray(epoch.group_scalars, self._dtype) if epoch.group_scalars else None,
        )


def _in_words(state: TrainState, inputs: StepInput, options: StepOptions) -> str:
    return in_words("training", inputs.batches)


def _nothing() -> TrainState:
    """Return no arrays at all."""
    nothing: Any = None
    return TrainState({}, {}, {}, nothing)
