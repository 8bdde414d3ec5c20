"""The compiled part of training: many minibatches per call, one compilation per padded shape.

A training call runs `for each minibatch: forward, backward, update` inside one XLA program; what must be known
outside, the sums of the criteria of every minibatch, comes back as one small array.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntk_config.base.diagnostics import UserError
from networks.arrays.lazy import jax, jnp
from networks.compile.evaluate import Settings, compile_gradient, network_parameters, network_state, store
from networks.compile.recurrence import CARRIED
from networks.graph.network import Network, Node
from trainers.loop.batching import CAPACITY, Batcher, Stack
from trainers.loop.class_labels import class_label_check
from trainers.loop.pieces import in_pieces
from trainers.loop.shapes import Shapes
from trainers.parallel.placement import OneDevice
from trainers.rules.update_step import Regularisation, Update
from trainers.rules.updates import Rule

Array = Any


@dataclass
class EpochSettings:
    """The scalars of an epoch.

    **Arguments:** `rate` and `momentum` per sample; the network's `Settings`; `seed` of dropout masks and noise;
    `frozen`: compute the criteria, but change nothing; `pieces`: see `trainers.loop.pieces`; `per_step`: `momentum` is
    per time step of a minibatch instead, however many sequences it has.
    """

    rate: float
    momentum: float
    settings: Settings
    seed: int
    frozen: bool = False
    pieces: int = 1
    per_step: bool = False


@dataclass
class StepContext:
    """A minibatch about to be trained on or evaluated, and all that its values depend on.

    **Arguments:** `stack`, its stack; `number`, from 1 in its epoch; `batch`, its data without
    the axis of the stack; the arrays `weights` and `state`; `key` of its random masks; the network's `settings`.
    """

    stack: Stack
    number: int
    batch: Any
    weights: dict[str, Array]
    state: dict[str, Array]
    key: Array | None
    settings: Settings

    @classmethod
    def of(cls, stack: Stack, index: int, number: int, *rest: Any) -> "StepContext":
        """Minibatch `index` of a stack."""
        return cls(stack, number, jax.tree.map(lambda leaf: leaf[index], stack.batch), *rest)


Callback = Callable[[StepContext], None]
"""Looks at minibatches before they are trained on or evaluated."""


def random_keys(seed: tuple[Any, Any], k: Any) -> tuple[Array, Array]:
    """The keys of masks and of noise of minibatch k of a stack; `seed`: the epoch's, and the stack's first number.

    They depend on the epoch and the minibatch only, however the minibatches were stacked.
    """
    masks, noise = jax.random.split(jax.random.fold_in(jax.random.key(seed[0]), seed[1] + k))
    return masks, noise


def carry(
    network: Network, state: dict[str, Array], stack: Stack, put: Callable[[Any], Array] | None = None
) -> dict[str, Array]:
    """The state with room for carried activations, if the sequences of a stack are truncated; `put` on the device.

    **Raises** a `UserError` for a FutureValue node that would have to look into the next minibatch.
    """
    slots = stack.carried_slots
    if not slots:
        return state
    for node in network.nodes.values():
        if node.kind.delay > 0 and any((layout.sequences[:, 3] > layout.T).any() for layout in stack.layouts):
            raise UserError(
                f"{node.operation} '{node.name}' looks ahead, but the reader cuts sequences into pieces",
                span=node.span,
                hint="FutureValue needs whole sequences: remove truncated=true from the reader",
                kind="TruncatedFuture",
            )
    if any(name.endswith(CARRIED) for name in state):
        return state
    fresh = network_state(network, truncated_slots=slots)
    put = put or jnp.asarray
    return state | {name: put(value) for name, value in fresh.items() if name.endswith(CARRIED)}


@dataclass
class Trainer:
    """The parameters under training, on the device, and the compiled step.

    **Arguments:**

    - `network`: its parameters are the start. While training runs the trainer alone has them; `store` shows them.
    - `nodes`: the criterion to train, then the nodes to report.
    - `rule`: the update rule.
    - `regularisation`: clipping, L1, L2, noise.
    - `targets`: changes the data of a stack before it is trained on.
    - `callbacks`: told of every stack before it is trained on; stacks must then be of one minibatch.
    - `trace_level`: from 2 on, every compilation is logged.
    - `placement`: where the arrays lie, and what several workers have in common.
    """

    network: Network
    nodes: Sequence[Node]
    rule: Rule
    regularisation: Regularisation = field(default_factory=Regularisation)
    targets: Callable[[Stack], Stack] | None = None
    callbacks: Sequence[Callback] = ()
    trace_level: int = 0
    placement: Any = field(default_factory=OneDevice)

    def __post_init__(self) -> None:
        names = [node.name for node in self.nodes]
        self._gradient = compile_gradient(self.network, names[0], names)
        self._dtype = np.dtype(self.network.dtype)
        self.shapes = Shapes()
        trained = self.network.parameters([self.nodes[0]])
        self._multipliers = {node.name: node.learning_rate_multiplier for node in trained}
        self._update = Update(self.rule, self.regularisation, self._multipliers)
        self._check = class_label_check(self.network, self.nodes)
        self._weights: dict[str, Array] = {}
        self._updates: dict[str, dict[str, Array]] = {}
        self._elsewhere: dict[str, dict[str, NDArray[Any]]] = {}  # what only another placement uses of a checkpoint
        self._away: dict[str, NDArray[Any]] = {}
        self._epoch: EpochSettings | None = None
        self._programs: dict[Any, Any] = {}
        self.place(self.placement)

    def place(self, placement: Any, update_state: dict[str, dict[str, NDArray[Any]]] | None = None) -> None:
        """Let the arrays lie elsewhere; takes the values of the network's nodes, see `load`."""
        self.placement = placement
        if placement not in self._programs:
            run = placement.compiled(self._run)
            self._programs[placement] = jax.jit(run, donate_argnums=(0, 1, 2), static_argnums=(10, 11))
        self._compiled = self._programs[placement]
        self.load(update_state)

    def load(self, update_state: dict[str, dict[str, NDArray[Any]]] | None = None) -> None:
        """Take the values of the network's nodes, and the state of the update rule (a fresh one if not given).

        Large arrays exist once: the nodes then show the trainer's own, and `update_state` is emptied.
        """
        held = {name: value for name, value in self._weights.items() if name in self._away}
        self._weights, self._updates = {}, {}
        put = self.placement.put
        parameters = network_parameters(self.network)
        for name in self._multipliers:
            node, given = self.network.nodes[name], parameters.pop(name)
            taken = held[name] if given is self._away.get(name) else put(np.asarray(given, self._dtype))
            self._weights[name] = taken
            node.value = self.placement.fetch(self._weights[name])
            del given
        self._away.clear()
        self._finite = self.placement.finite()
        self._state = {name: put(value) for name, value in (network_state(self.network) | parameters).items()}
        self.placement.begin(self._weights, update_state)
        self._elsewhere = {}
        for name, weight in self._weights.items():
            if update_state and name in update_state:
                expected, arrays = jax.eval_shape(self.rule.start, weight), update_state.pop(name)
                self._updates[name] = {key: put(np.asarray(arrays.pop(key), expected[key].dtype)) for key in expected}
                self._elsewhere[name] = arrays
            else:
                self._updates[name] = self.placement.start(self.rule, weight)

    def drop_updates(self) -> None:
        """Free the state of the update rule, so that another one can be read from a file and given to `load`."""
        self._updates, self._elsewhere = {}, {}

    @property
    def compilations(self) -> int:
        """How often the step was compiled so far."""
        return self._compiled._cache_size()  # pyright: ignore[reportAttributeAccessIssue]

    def batcher(self, minibatch_size: int, capacity: int = CAPACITY) -> Batcher:
        """What pads and stacks the minibatches for this trainer."""
        more = {"shapes": self.shapes, "capacity": capacity, "trace_level": self.trace_level}
        return self.placement.batcher(Batcher.of(self.network, self.nodes, minibatch_size, **more))

    @property
    def weights(self) -> dict[str, Array]:
        """The parameters under training."""
        return self._weights

    def replace_weights(self, weights: dict[str, Array], afresh: bool = False) -> None:
        """Go on from other weights; `afresh`: with the update rule as before its first update."""
        self._weights = weights
        if afresh:
            self._updates = {name: self.placement.start(self.rule, weight) for name, weight in weights.items()}

    def forget(self) -> None:
        """Drop what concerns one epoch only: activations that truncated sequences carry on, a criterion that was not
        finite."""
        self._finite = self.placement.finite()
        self._state = {name: value for name, value in self._state.items() if not name.endswith(CARRIED)}

    def store(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Show the trained values in the network; returns the state of the update rule as numpy arrays.

        Nothing is copied where the device's memory is the machine's: drop what was returned before training goes on.
        """
        fetch = self.placement.fetch
        store(self.network, {}, jax.tree.map(fetch, self._state))
        for name, weight in self._weights.items():
            self.network.nodes[name].value = fetch(weight)
        self._away.clear()
        more = self.placement.more()
        updates = jax.tree.map(fetch, self._updates)
        return {name: state | self._elsewhere.get(name, {}) | more.get(name, {}) for name, state in updates.items()}

    def at(self, stack: Stack, index: int, number: int) -> StepContext:
        """A minibatch, `number` in its epoch (from 1), with the weights and the state as they are now."""
        assert self._epoch is not None
        key, _ = random_keys((self._epoch.seed, number - 1), 0)
        weights, state = self.placement.own((self._weights, self._state))
        return StepContext.of(stack, index, number, weights, state, key, self._epoch.settings)

    def _withdraw(self) -> None:
        """Take the values from the nodes until the next `store`, so that the arrays can be changed in place."""
        for name in self._weights:
            node = self.network.nodes[name]
            assert node.value is not None
            self._away[name] = np.broadcast_to(np.array(np.nan, node.value.dtype), node.value.shape)
            node.value = self._away[name]

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Everything that changes while training, of all workers, as flat arrays."""
        parts = {"weight": self._weights, "state": self._state}
        arrays = {f"{part}\n{name}": value for part, values in parts.items() for name, value in values.items()}
        for name, state in self._updates.items():
            arrays |= {f"update\n{name}\n{key}": value for key, value in state.items()}
        saved = {name: self.placement.save(value, name.endswith(CARRIED)) for name, value in arrays.items()}
        return saved | {f"kept\n{name}": value for name, value in self.placement.kept().items()}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go back to a snapshot, which is emptied, so that large arrays do not exist twice."""
        self._state = {}
        kept = [path for path in arrays if path.startswith("kept\n")]
        self.placement.keep({path.removeprefix("kept\n"): arrays.pop(path) for path in kept})
        for path in list(arrays):
            array = arrays.pop(path)
            part, name, *rest = path.split("\n")
            placed = self.placement.restore(array, name.endswith(CARRIED))
            if part == "update":
                self._updates[name][rest[0]] = placed
            else:
                (self._weights if part == "weight" else self._state)[name] = placed

    def run(self, stack: Stack, epoch: EpochSettings, first: int) -> Array:
        """Train on a stack of minibatches.

        **Arguments:**

        - `stack`: the stack.
        - `epoch`: the scalars of the epoch.
        - `first`: number of the stack's first minibatch in its epoch, for the random masks.

        **Returns:** array (minibatches, nodes) of sums before each update; ready when it is read.
        """
        if self.targets is not None:
            stack = self.targets(stack)
        self._check(stack.batch)
        place = self.placement
        self._state = carry(self.network, self._state, stack, partial(place.put, slots=True))
        self._epoch = epoch
        if self.callbacks:
            context = self.at(stack, 0, first + 1)
            for callback in self.callbacks:
                callback(context)
        if not self._away:
            self._withdraw()
        self._weights, self._updates, self._state, totals, self._finite = self._compiled(
            self._weights,
            self._updates,
            self._state,
            self._finite,
            place.batch(stack.batch),
            len(stack.minibatches),
            place.scalars(stack, epoch.momentum, self._dtype, epoch.per_step),
            self._dtype.type(epoch.rate),
            (epoch.seed, first),
            epoch.settings,
            epoch.frozen,
            epoch.pieces,
        )
        place.after(self, stack)
        return totals

    def _run(
        self,
        weights: dict[str, Array],
        updates: dict[str, Any],
        state: dict[str, Array],
        finite: Array,
        batches: Any,
        count: Array,
        scalars: Array,
        rate: Array,
        seed: tuple[Array, Array],
        settings: Settings,
        frozen: bool,
        pieces: int,
    ) -> tuple[dict[str, Array], dict[str, Any], dict[str, Array], Array, Array]:
        """Train on the minibatches of a stack; nothing changes any more from a criterion on that is not finite."""

        def minibatch(k: Array, carry: Any) -> Any:
            weights, updates, before, totals, finite = carry
            batch = jax.tree.map(lambda leaf: leaf[k], batches)
            mask_key, noise_key = random_keys(seed, k)
            compute = in_pieces(self._gradient, pieces)
            place = self.placement
            gradients, sums, state = compute(weights, before, batch, place.key(mask_key), settings)
            gradients, sums, state = place.joined(gradients, sums, state, before, batch)
            finite &= jnp.isfinite(sums[self.nodes[0].name]) & _computed(gradients)
            state = jax.tree.map(partial(jnp.where, finite), state, before)
            if not frozen:
                updated = self._update(weights, updates, gradients, rate, scalars[k], noise_key, finite)
                weights, updates = place.updated(updated, (weights, updates), scalars[k][1])
            row = jnp.stack([sums[node.name] for node in self.nodes]).astype(totals.dtype)
            return weights, updates, state, totals.at[k].set(row), finite

        totals = jnp.zeros((scalars.shape[0], len(self.nodes)), scalars.dtype)
        return jax.lax.fori_loop(0, count, minibatch, (weights, updates, state, totals, finite))


LARGE = 1 << 16
"""Elements of a parameter from which on copying it takes longer than waiting for what would be computed beside."""


def _computed(gradients: Any) -> Array:
    """True, but not before the gradients of the large parameters are computed.

    What waits for it changes parameters in place. Otherwise XLA copies those that the backward pass still reads, in
    every minibatch.
    """
    leaves = [leaf for leaf in jax.tree.leaves(gradients) if leaf.size >= LARGE]
    elements = jnp.stack([jnp.isnan(leaf[(0,) * leaf.ndim]) for leaf in leaves] or [jnp.asarray(True)])
    return jnp.sum(elements) <= elements.size
