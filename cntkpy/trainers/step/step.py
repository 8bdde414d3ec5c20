"""The compiled part of training: many minibatches per call, one compilation per padded shape.

A training call runs `for each minibatch: forward, backward, update` inside one XLA program; what must be known
outside, the sums of the criteria of every minibatch, comes back as one small array.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.compile.evaluate import (
    LENGTHS,
    Settings,
    compile_gradient,
    kept_lengths,
    network_parameters,
    network_state,
    remembered,
    store,
)
from cntkpy.networks.compile.executables import Program
from cntkpy.networks.compile.flat import Flat, flat_parameters
from cntkpy.networks.compile.recurrence import CARRIED, carried
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.trainers.rules.update_step import OF_MEAN, PER_SAMPLE, Group, Regularisation, Update
from cntkpy.trainers.rules.updates import Rule, StepScalars
from cntkpy.trainers.step.ahead import PlacedStack
from cntkpy.trainers.step.batching import CAPACITY, Batcher, Stack
from cntkpy.trainers.step.buckets import TRAINING_BUCKETS, Buckets
from cntkpy.trainers.step.class_labels import class_label_check
from cntkpy.trainers.step.flat_state import apart, joined_update, updates_apart
from cntkpy.trainers.step.pieces import in_pieces
from cntkpy.trainers.step.state import StepInput, StepOptions, TrainState
from cntkpy.trainers.step.strategy import SingleDevice, Strategy

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import Bool, Float, PRNGKeyArray


UpdateState = dict[str, dict[str, NDArray[Any]]]
"""By parameter and name, the arrays of the update rule as numpy."""


@dataclass
class EpochSettings:
    """The scalars of an epoch.

    Attributes:
        rate: learning rate per sample.
        momentum: per sample.
        settings: what the epoch sets in the network.
        seed: of dropout masks and noise.
        frozen: compute the criteria, but change nothing.
        pieces: see `cntkpy.trainers.step.pieces`.
        per_step: `momentum` is per time step of a minibatch instead, however many sequences it has.
        rate_for: what `rate` is for, see `cntkpy.trainers.rules.update_step.PER_SAMPLE`.
        more: the scalars of groups of parameters, see `cntkpy.trainers.rules.update_step.Update`.
    """

    rate: float
    momentum: float
    settings: Settings
    seed: int
    frozen: bool = False
    pieces: int = 1
    per_step: bool = False
    rate_for: int = PER_SAMPLE
    more: tuple[tuple[float, ...], ...] = ()


@dataclass
class StepContext:
    """A minibatch about to be trained on or evaluated, and all that its values depend on.

    Attributes:
        stack: the stack that it is part of.
        number: from 1 in its epoch.
        batch: its data, without the axis of the stack.
        weights: by name, the parameters under training.
        state: by name, what the network itself changes, and parameters that are not trained.
        key: of its random masks; None: there are none.
        settings: what the epoch sets in the network.
    """

    stack: Stack
    number: int
    batch: Any
    weights: dict[str, Array]
    state: dict[str, Array]
    key: PRNGKeyArray | None
    settings: Settings

    @classmethod
    def of(cls, stack: Stack, index: int, number: int, *rest: Any) -> StepContext:
        """Minibatch `index` of a stack; `rest`: the attributes from `weights` on."""
        return cls(stack, number, minibatch_of(stack.batch, index), *rest)


Callback = Callable[[StepContext], None]
"""Looks at minibatches before they are trained on or evaluated."""


def minibatch_of(batches: Any, k: Any) -> Any:
    """Minibatch `k` of a stacked `Batch`, at least 0: the same without the axis in front."""
    return jax.tree.map(partial(row_of, k=k), batches)


def row_of(every: Array, k: Any) -> Array:
    """`every[k]`; where `k`, at least 0, is computed, JAX traces this ten times as fast."""
    if isinstance(k, int):
        return every[k]
    start, shape = (k, *[0] * (every.ndim - 1)), every.shape[1:]
    return jax.lax.dynamic_slice(every, start, (1, *shape), allow_negative_indices=False).reshape(shape)


def with_row(every: Array, k: Array, one: Array) -> Array:
    """`every.at[k].set(one)`, likewise."""
    start = (k, *[0] * one.ndim)
    return jax.lax.dynamic_update_slice(every, one.reshape(1, *one.shape), start, allow_negative_indices=False)


def in_words(what: str, batches: Any) -> str:
    """What is computed with a stacked `Batch`: how large its minibatches are."""
    steps, slots = batches.mask.shape[-2:]
    return f"{what}, {slots} samples" if steps == 1 else f"{what}, {steps} time steps, {slots} sequences"


def _in_words(state: TrainState, given: StepInput, options: StepOptions) -> str:
    return in_words("training", given.batches)


def random_keys(seed: tuple[Any, Any], k: Any) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """The random keys of a minibatch, which depend on the epoch and the minibatch, however minibatches are stacked.

    Args:
        seed: that of the epoch, and the number of the stack's first minibatch.
        k: the minibatch's place in its stack.

    Returns:
        The keys of its masks and of the noise of its update.
    """
    masks, noise = jax.random.split(jax.random.fold_in(jax.random.key(seed[0]), seed[1] + k))
    return masks, noise


def carry(
    network: ValidatedNetwork, state: Mapping[str, Any], stack: Stack, put: Callable[[Any], Array] | None = None
) -> dict[str, Any]:
    """The network's state with room for carried activations, if the sequences of a stack are truncated; else without.

    Args:
        network: the network.
        state: its state by name.
        stack: the next minibatches.
        put: lays an array on the devices; None: on the only one.

    Raises:
        UserError: a FutureValue node would have to look into the next minibatch.
    """
    slots = stack.carried_slots
    if not slots:  # whole sequences may come after pieces of others, in another number of slots
        return {name: value for name, value in state.items() if not name.endswith(CARRIED)}
    whole = (
        node for node in network.nodes.values() if node.kind.time.delay > 0 or node.operation == "OptimizedRNNStack"
    )
    node = next(whole, None)
    if node is not None and any((layout.sequences[:, 3] > layout.T).any() for layout in stack.layouts):
        raise UserError(
            "TruncatedFuture",
            f"{node.operation} '{node.name}' looks at whole sequences, but the reader cuts them into pieces",
            span=node.span,
            hint=f"{node.operation} needs whole sequences: remove truncated=true from the reader",
        )
    fresh: dict[str, Any] = {}
    for name, (steps, *shape) in carried(network).items():
        zeros = np.zeros((steps, slots, *shape), network.dtype)
        fresh[name] = jnp.asarray(zeros) if put is None else put(zeros)
        if name in state and state[name].shape == fresh[name].shape:
            return dict(state)  # all of them have as many slots as the first
    return {**state} | fresh  # the first ones, or the reader has another number of slots and starts over


class _NodeValues:
    """What the nodes of parameters show while the compiled step has their values.

    Args:
        network: The network.
    """

    def __init__(self, network: ValidatedNetwork):
        self._network = network
        self._shown: dict[str, NDArray[Any]] = {}
        """Since `load`, until training changes it."""
        self._withdrawn: dict[str, NDArray[Any]] = {}
        """Placeholders, until the next `store`."""

    def show(self, name: str, value: NDArray[Any]) -> None:
        """Let a node show the step's own array."""
        self._network.nodes[name].value = self._shown[name] = value

    def is_own(self, name: str) -> bool:
        """Whether what a node shows is the step's own, and need not be copied."""
        value = self._network.nodes[name].value
        return value is not None and (value is self._withdrawn.get(name) or value is self._shown.get(name))

    def withdraw(self, names: Iterable[str]) -> None:
        """Take the values from the nodes, so that the arrays can be changed in place."""
        if self._withdrawn:
            return
        self._shown.clear()
        for name in names:
            node = self._network.nodes[name]
            assert node.value is not None
            self._withdrawn[name] = np.broadcast_to(np.array(np.nan, node.value.dtype), node.value.shape)
            node.value = self._withdrawn[name]

    def stored(self) -> None:
        """The nodes have values of their own again."""
        self._withdrawn.clear()

    def changed(self) -> None:
        """The step's arrays are others than those that were shown."""
        self._shown.clear()


@dataclass
class CompiledStep:
    """The parameters under training, on the devices, and the compiled step.

    Args:
        network: its parameters are the start. While training runs the trainer alone has them; `store` shows them.
        nodes: the criterion to train, then the nodes to report.
        rule: the update rule.
        regularisation: clipping, L1, L2, noise.
        targets: changes the data of a stack before it is trained on.
        callbacks: get the context of every minibatch before it is trained on; stacks must then be of one minibatch.
        trace_level: from 2 on, every compilation is logged.
        strategy: how the devices train together.
        groups: of parameters with an update rule of their own, that rule.
        max_minibatch_size: the most samples of a minibatch in any epoch, see `Batcher`.
    """

    network: ValidatedNetwork
    nodes: Sequence[Node]
    rule: Rule
    regularisation: Regularisation = field(default_factory=Regularisation)
    targets: Callable[[Stack], Stack] | None = None
    callbacks: Sequence[Callback] = ()
    trace_level: int = 0
    strategy: Strategy = field(default_factory=SingleDevice)
    groups: dict[str, Group] = field(default_factory=dict[str, Group])
    max_minibatch_size: int = 0

    def __post_init__(self) -> None:
        names = [node.name for node in self.nodes]
        self._axes = {node.name: node.axis for node in self.network.nodes.values() if node.kind.layout == "always"}
        self._dtype: np.dtype[Any] = np.dtype(self.network.dtype)
        self.buckets = Buckets()
        trained = self.network.parameters([self.nodes[0]])
        multipliers = {node.name: node.learning_rate_multiplier for node in trained}
        self._trained = list(multipliers)
        update = Update(self.rule, self.regularisation, multipliers, self.groups)
        self._vectors = flat_parameters(self.network, names, {name: update.shared(name) for name in multipliers})
        self._update = update.with_flat(self._vectors)
        self._gradient = compile_gradient(self.network, names[0], names, self._vectors)
        self._random = self._update.noisy or any(node.kind.random for node in self.network.nodes.values())
        self._check = class_label_check(self.network, self.nodes)
        self._state: TrainState = _nothing()
        self._elsewhere: UpdateState = {}  # what only another strategy uses of a checkpoint
        self._values = _NodeValues(self.network)
        self._epoch: EpochSettings | None = None
        self._programs: dict[Strategy, Program] = {}
        self._has_waiting_updates = False  # see `_place_updates`
        self.use(self.strategy)

    def use(self, strategy: Strategy, update_state: UpdateState | None = None) -> None:
        """Train with another strategy from now on; takes the values of the network's nodes, see `load`."""
        if strategy is not self.strategy:
            self._values.changed()
        self.strategy = strategy
        if strategy not in self._programs:
            step, names = strategy.compiled(self._step), [node.name for node in self.nodes]
            identity = (self.network, names, self._update, strategy.identity)
            self._programs[strategy] = Program(
                step,
                identity,
                donate=1,
                static=1,
                devices=strategy.devices,
                describe=_in_words,
            )
        self.load(update_state)

    def load(self, update_state: UpdateState | None = None) -> list[str]:
        """Take the values of the network's nodes, and the state of the update rule (a fresh one if not given).

        Large arrays exist once: the nodes then show the trainer's own, and `update_state` is emptied.

        Returns:
            The parameters whose state is fresh, because the given one is of another shape or another rule.
        """
        held = {name: value for name, value in self._weights().items() if self._values.is_own(name)}
        self._state, strategy = _nothing(), self.strategy
        place, weights = strategy.place, self._state.weights
        parameters = network_parameters(self.network)
        self._take(parameters, held)
        self._values.stored()
        untrained = network_state(self.network) | parameters
        network = {name: place(value) for name, value in untrained.items()}
        unlike = [name for name in self._trained if not self._fits(name, (update_state or {}).get(name))]
        for name in unlike:
            del (update_state or {})[name]
        strategy.start_from(weights, update_state)
        updates: dict[str, dict[str, Array]] = {}
        self._elsewhere = {}
        for flat in self._flats():
            start = partial(strategy.initial_update_state, self._update.rule_of(flat.key))
            updates[flat.key], rest = joined_update(flat, update_state or {}, start, weights[flat.key])
            self._elsewhere |= rest
        for name, weight in weights.items():
            if name in updates:
                continue
            if update_state and name in update_state:
                expected, arrays = jax.eval_shape(self._update.rule_of(name).start, weight), update_state.pop(name)
                updates[name] = {key: place(np.asarray(arrays.pop(key), expected[key].dtype)) for key in expected}
                self._elsewhere[name] = arrays
            else:
                updates[name] = strategy.initial_update_state(self._update.rule_of(name), weight)
        self._state = TrainState(weights, updates, network, strategy.flag())
        self._has_waiting_updates = any(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(updates))
        return unlike

    def _take(self, given: dict[str, Any], held: dict[str, Any]) -> None:
        """Lay the trained parameters on the devices, and let their nodes show them.

        Args:
            given: the values of nodes; those that are taken are removed.
            held: those among them that are newer than the nodes, or on the devices already.
        """
        place, show, weights = self.strategy.place, self.strategy.to_host, self._state.weights
        for flat in self._flats():
            parts = {name: given.pop(name) for name in flat.names}
            parts |= {name: held[name] for name in flat.names if name in held}
            weights[flat.key] = place(np.asarray(flat.join(parts), self._dtype))
            for name, part in flat.split(show(weights[flat.key])).items():
                self._values.show(name, part)
        for name in self._trained:
            if name in given:
                value = given.pop(name)
                weights[name] = held[name] if name in held else place(np.asarray(value, self._dtype))
                self._values.show(name, show(weights[name]))
                del value

    def _flats(self) -> Sequence[Flat]:
        """The vectors of parameters; strategies of several devices have none, because they save arrays by name."""
        return self._vectors if type(self.strategy) is SingleDevice else ()

    def _weights(self) -> dict[str, Any]:
        """The parameters by name; those of vectors are NumPy's."""
        return apart(self._vectors, self._state.weights, self.strategy.to_host)

    def reload(self) -> None:
        """Take the values of the network's nodes again; the state of the update rule stays as it is.

        That of one device stays where it is; another strategy begins anew with it, see `load`.
        """
        if type(self.strategy) is not SingleDevice:
            self.load(copy.deepcopy(self.updates()))
            return
        untrained = network_state(self.network) | network_parameters(self.network)
        self._take(untrained, {name: value for name, value in self._weights().items() if self._values.is_own(name)})
        self._values.stored()
        network = {name: self.strategy.place(value) for name, value in untrained.items()}
        self._state = self._state._replace(network=network, finite=self.strategy.flag())

    def _fits(self, name: str, arrays: dict[str, NDArray[Any]] | None) -> bool:
        """Whether the state of a parameter's update, if there is one, is one that the rule can continue with."""
        if arrays is None:
            return True
        expected = jax.eval_shape(self._update.rule_of(name).start, self.network.nodes[name].value)
        return all(key in arrays and arrays[key].shape == one.shape for key, one in expected.items())

    def _place_updates(self) -> None:
        """Lay on the device what the update rule starts with. That waits for the program, whose making takes memory."""
        for arrays in self._state.updates.values():
            for key, value in arrays.items():
                if isinstance(value, np.ndarray):
                    arrays[key] = self.strategy.place(value)
        self._has_waiting_updates = False

    def drop_updates(self) -> None:
        """Free the state of the update rule, so that another one can be read from a file and given to `load`."""
        self._state, self._elsewhere = self._state._replace(updates={}), {}

    @property
    def compilations(self) -> int:
        """How often the step was compiled so far."""
        return self._programs[self.strategy].shapes

    def batcher(
        self,
        minibatch_size: int,
        capacity: int = CAPACITY,
        chosen: int = TRAINING_BUCKETS,
    ) -> Batcher:
        """What pads and stacks the minibatches for this trainer, see `Batcher`."""
        like = self._batcher
        more: dict[str, Any] = {"buckets": self.buckets, "capacity": capacity, "chosen": min(chosen, like.chosen)}
        return self.strategy.batcher(replace(like, minibatch_size=minibatch_size, trace_level=self.trace_level, **more))

    @cached_property
    def _batcher(self) -> Batcher:
        """What all batchers of this trainer have in common."""
        return Batcher.of(self.network, self.nodes, 1, chosen=sys.maxsize, max_minibatch_size=self.max_minibatch_size)

    def forget(self) -> None:
        """Drop what concerns one epoch only: activations that truncated sequences carry on, what nodes remember, a
        criterion that was not finite."""
        lasting = {name: value for name, value in self._state.network.items() if not name.endswith(CARRIED)}
        lasting |= {name: self.strategy.place(value) for name, value in remembered(self.network).items()}
        self._state = self._state._replace(network=lasting, finite=self.strategy.flag())

    def finish_epoch(self) -> None:
        """Let all workers have the same weights."""
        self._state = self.strategy.after_epoch(self._state, self.rule)

    def store(self) -> UpdateState:
        """Show the trained values in the network; returns the state of the update rule as numpy arrays.

        Nothing is copied where the device's memory is the machine's: drop what was returned before training resumes.
        """
        fetch = self.strategy.to_host
        store(self.network, {}, jax.tree.map(fetch, self._state.network))
        for name, weight in self._weights().items():
            self.network.nodes[name].value = fetch(weight)
        self._values.stored()
        return self.updates()

    def updates(self) -> UpdateState:
        """The state of the update rule as numpy arrays, see `store`."""
        fetch, more = self.strategy.to_host, self.strategy.saved_updates()
        updates: UpdateState = jax.tree.map(fetch, updates_apart(self._vectors, self._state.updates, fetch))
        return {name: state | self._elsewhere.get(name, {}) | more.get(name, {}) for name, state in updates.items()}

    def updates_of(self, name: str) -> dict[str, NDArray[Any]]:
        """The state of the update rule of a parameter."""
        fetch = self.strategy.to_host
        return jax.tree.map(fetch, updates_apart(self._vectors, self._state.updates, fetch)[name])

    def at(self, stack: Stack, index: int, number: int) -> StepContext:
        """A minibatch, `number` in its epoch (from 1), with the weights and the state as they are now."""
        assert self._epoch is not None
        key, _ = random_keys((self._epoch.seed, number - 1), 0)
        weights, state = self.strategy.to_process((self._weights(), self._state.network))
        weights = {name: jnp.asarray(value) for name, value in weights.items()}
        return StepContext.of(stack, index, number, weights, state, key, self._epoch.settings)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Everything that changes while training, of all workers, as flat arrays."""
        parts = {"weight": self._weights(), "state": self._state.network}
        arrays = {f"{part}\n{name}": value for part, values in parts.items() for name, value in values.items()}
        updates = updates_apart(self._vectors, self._state.updates, self.strategy.to_host)
        for name, state in updates.items():
            arrays |= {f"update\n{name}\n{key}": value for key, value in state.items()}
        saved = {name: self.strategy.to_save(value, name.endswith(CARRIED)) for name, value in arrays.items()}
        return saved | {f"kept\n{name}": value for name, value in self.strategy.save_state().items()}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go back to a snapshot, which is emptied, so that large arrays do not exist twice."""
        weights, updates, network = self._state.weights, self._state.updates, self._state.network
        network.clear()
        self._values.changed()
        kept = [path for path in arrays if path.startswith("kept\n")]
        self.strategy.restore_state({path.removeprefix("kept\n"): arrays.pop(path) for path in kept})
        for flat in self._flats():
            weights[flat.key] = self.strategy.place(flat.join({n: arrays.pop(f"weight\n{n}") for n in flat.names}))
            for key in updates[flat.key]:
                found = {name: arrays.pop(f"update\n{name}\n{key}") for name in flat.names}
                updates[flat.key][key] = self.strategy.place(flat.join(found))
        for path in list(arrays):
            array = arrays.pop(path)
            part, name, *rest = path.split("\n")
            placed = self.strategy.from_saved(array, name.endswith(CARRIED))
            if part == "update":
                updates[name][rest[0]] = placed
            else:
                (weights if part == "weight" else network)[name] = placed

    def place(self, stack: Stack) -> PlacedStack:
        """A stack as `run` takes it; a copy to the device is begun, not waited for."""
        if self.targets is not None:
            stack = self.targets(stack)
        self._check(stack.batch)
        return PlacedStack(stack, self.strategy.place_batch(stack))

    def run(self, stack: Stack | PlacedStack, epoch: EpochSettings, first: int) -> Float[Array, "minibatches nodes"]:
        """Train on a stack of minibatches.

        Args:
            stack: the minibatches, which `place` may have placed before.
            epoch: the scalars of the epoch.
            first: number of the stack's first minibatch in its epoch, for the random masks.

        Returns:
            The sums of the nodes before each update, padded to the capacity of the stack; ready when it is read. After
            them the samples of those nodes among them whose samples are counted when they are computed.
        """
        stack, batch = stack if isinstance(stack, PlacedStack) else self.place(stack)
        strategy = self.strategy
        network = carry(self.network, self._state.network, stack, partial(strategy.place, slots=True))
        self._state = self._state._replace(network=network)
        self._epoch = epoch
        if self.callbacks:
            context = self.at(stack, 0, first + 1)
            for callback in self.callbacks:
                callback(context)
        self._values.withdraw(self._trained)
        program = self._programs[strategy]
        if self._has_waiting_updates:
            program.find(*self._arguments(stack, batch, epoch, first))
            self._place_updates()
        state, totals = program(*self._arguments(stack, batch, epoch, first))
        self._state = TrainState(*state)
        self._state = strategy.after_stack(self._state, stack, self.rule)
        return totals

    def _arguments(
        self, stack: Stack, batch: Any, epoch: EpochSettings, first: int
    ) -> tuple[TrainState, StepInput, StepOptions]:
        """What the compiled step is given."""
        whole = not self.nodes[0].has_layout
        given = StepInput(
            batch,
            len(stack.minibatches),
            self.strategy.step_scalars(stack, epoch.momentum, self._dtype, epoch.per_step, whole),
            self._dtype.type(epoch.rate),
            (epoch.seed, first),
            epoch.settings,
            np.asarray(epoch.more, self._dtype) if epoch.more else None,
        )
        state = self._state
        if self._has_waiting_updates:
            state = state._replace(updates=jax.tree.map(_as_placed, state.updates))
        return state, given, StepOptions(epoch.frozen, epoch.pieces, epoch.rate_for)

    def _step(
        self, state: TrainState, given: StepInput, options: StepOptions
    ) -> tuple[TrainState, Float[Array, "minibatches nodes"]]:
        """Train on the minibatches of a stack; see `cntkpy.trainers.step.state.Step`."""
        compute, strategy = in_pieces(self._gradient, options.pieces, self._axes), self.strategy

        def minibatch(k: Array, carried: tuple[TrainState, Array]) -> tuple[TrainState, Array]:
            before, totals = carried
            batch = minibatch_of(given.batches, k)
            key, noise_key = random_keys(given.seed, k) if self._random else (None, None)
            key = None if key is None else strategy.mask_key(key)
            gradients, sums, network = compute(before.weights, before.network, batch, key, given.settings)
            gradients, sums, network = strategy.reduce(gradients, sums, network, before.network, batch)
            finite = before.finite & (jnp.isfinite(sums[self.nodes[0].name]) & _computed(gradients))
            network = jax.tree.map(partial(jnp.where, finite), network, before.network)
            weights, updates = before.weights, before.updates
            if not options.frozen:
                row = row_of(given.scalars, k)
                number = jnp.maximum(row[1], 1)
                rate = given.rate if options.rate_for == PER_SAMPLE else given.rate / number
                scalars = StepScalars(rate, row[0], row[1], number if options.rate_for == OF_MEAN else 1.0)
                changed = self._update(weights, updates, gradients, scalars, noise_key, finite, given.more)
                weights, updates = strategy.updated(changed, (weights, updates), scalars.samples)
            values = jnp.stack([sums[name] for name in columns]).astype(totals.dtype)
            return TrainState(weights, updates, network, finite), with_row(totals, k, values)

        columns = [node.name for node in self.nodes]
        columns += [node.name + LENGTHS for node in kept_lengths(self.nodes)]
        totals = jnp.zeros((given.scalars.shape[0], len(columns)), given.scalars.dtype)
        return jax.lax.fori_loop(0, given.count, minibatch, (state, totals))


def _as_placed(value: Any) -> Any:
    """Shape and type of what is not placed yet."""
    return value if isinstance(value, jax.Array) else jax.ShapeDtypeStruct(value.shape, value.dtype)


def _nothing() -> TrainState:
    """No arrays at all."""
    nothing: Any = None
    return TrainState({}, {}, {}, nothing)


LARGE_PARAMETER = 1 << 16
"""Elements of a parameter from which on copying it takes longer than waiting for what would be computed beside."""


def _computed(gradients: Any) -> Bool[Array, ""]:
    """True, but not before the gradients of the large parameters are computed.

    What waits for it changes parameters in place. Otherwise XLA copies those that the backward pass still reads, in
    every minibatch.
    """
    leaves = [leaf for leaf in jax.tree.leaves(gradients) if leaf.size >= LARGE_PARAMETER]
    elements = jnp.stack([jnp.isnan(leaf[(0,) * leaf.ndim]) for leaf in leaves] or [jnp.asarray(True)])
    return jnp.sum(elements) <= elements.size
