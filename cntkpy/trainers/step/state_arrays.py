"""The arrays of a training: by name on the host, as a `TrainState` on the devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.flat import Flat
from cntkpy.networks.compile.recurrence import CARRIED
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.trainers.step.memory import HostArray
from cntkpy.trainers.step.state import TrainState

if TYPE_CHECKING:
    from jax import Array, ShapeDtypeStruct

    from cntkpy.trainers.rules.update_step import Update
    from cntkpy.trainers.rules.updates import Rule
    from cntkpy.trainers.step.strategy import Strategy

Arrays = dict[str, NDArray[Any]]
"""By name, arrays of the host."""
UpdateState = dict[str, Arrays]
"""By parameter and name, the arrays of the update rule on the host."""
Named = dict[str, Any]
"""By name of a parameter or key of a vector (`cntkpy.networks.compile.flat`), an array."""


@dataclass
class StateArrays:
    """Places arrays on the devices of a strategy, and fetches them.

    A large array exists once: what `start`, `with_updates` and `restored` are given is emptied, and what `values` and
    `updates` return is the memory of the device where the host can read it. Drop it before training resumes.

    Args:
        network: the network.
        trained: names of the parameters under training.
        update: changes them.
        vectors: those in which small parameters lie, where the strategy allows it.
        strategy: where arrays lie.
    """

    network: ValidatedNetwork
    trained: Sequence[str]
    update: Update
    vectors: Sequence[Flat]
    strategy: Strategy

    def __post_init__(self) -> None:
        if not self.strategy.placement.joins_parameters:
            self.vectors = ()
        self._unused: UpdateState = {}
        """Arrays of a checkpoint that only another strategy uses."""

    def start(self, values: Arrays, updates: UpdateState | None = None) -> tuple[TrainState, list[str]]:
        """Return the state of a training that starts from values by name, and what `with_updates` returns."""
        state = self.with_values(TrainState({}, {}, {}, self.strategy.placement.flag()), values)
        return self.with_updates(state, updates)

    def with_values(self, state: TrainState, values: Arrays) -> TrainState:
        """Return a state with these values of the parameters and of the network's state."""
        place, dtype, weights = self.strategy.placement.place, np.dtype(self.network.dtype), Named()
        for flat in self.vectors:
            joined = flat.join({name: values.pop(name) for name in flat.names})
            weights[flat.key] = place(np.asarray(joined, dtype))
            del joined
        for name in self.trained:
            if name in values:
                weights[name] = place(np.asarray(values.pop(name), dtype))
        network = {name: place(values.pop(name)) for name in list(values)}
        return state._replace(weights=weights, network=network, finite=self.strategy.placement.flag())

    def with_updates(self, state: TrainState, saved: UpdateState | None) -> tuple[TrainState, list[str]]:
        """Return a state with the saved arrays of the update rule, and the parameters whose arrays are fresh.

        Arrays are fresh where nothing is saved, and where what is saved is of another shape or another rule; only the
        latter parameters are returned.
        """
        saved = {} if saved is None else saved
        unlike = [name for name in self.trained if name in saved and not self._fits(name, saved[name])]
        for name in unlike:
            del saved[name]
        state = self._with_equal_numbers(state, saved)
        self.strategy.averaging.start_from(state.weights, saved)
        updates: dict[str, Named] = {}
        self._unused = {}
        for flat in self.vectors:
            start = partial(self.strategy.placement.start_update, self.update.rule_of(flat.key))
            updates[flat.key], unused = _joined_update(flat, saved, start, state.weights[flat.key])
            self._unused |= unused
        for name, weight in state.weights.items():
            if name in updates:
                continue
            if name in saved:
                updates[name], self._unused[name] = self._placed(name, weight, saved.pop(name))
            else:
                updates[name] = self.strategy.placement.start_update(self.update.rule_of(name), weight)
        return state._replace(updates=updates), unlike

    def _with_equal_numbers(self, state: TrainState, saved: UpdateState) -> TrainState:
        """Return a state whose vectors are of parameters that the update rule keeps the same numbers of; other vectors
        are taken apart, for the parameters cannot share a number."""
        unequal = [flat for flat in self.vectors if not _share_numbers(flat, saved, self.update.rule_of(flat.key))]
        if not unequal:
            return state
        weights, place = dict(state.weights), self.strategy.placement.place
        for flat in unequal:
            vector = self.strategy.placement.fetch(weights.pop(flat.key))
            weights |= {name: place(part) for name, part in flat.split(vector).items()}
        self.vectors = [flat for flat in self.vectors if flat not in unequal]
        return state._replace(weights=weights)

    def has_waiting_updates(self, state: TrainState) -> bool:
        """Return whether arrays that the update rule starts with are not placed yet."""
        return any(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(state.updates))

    def with_placed_updates(self, state: TrainState) -> TrainState:
        """Return a state whose arrays of the update rule are placed."""
        place = self.strategy.placement.place

        def placed(value: NDArray[Any] | Array) -> Array:
            return place(value) if isinstance(value, np.ndarray) else value

        return state._replace(updates=jax.tree.map(placed, state.updates))

    def as_if_placed(self, state: TrainState) -> TrainState:
        """Return a state with shape and type of the arrays that are not placed yet."""

        def described(value: NDArray[Any] | Array) -> Array | ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(value.shape, value.dtype) if isinstance(value, np.ndarray) else value

        return state._replace(updates=jax.tree.map(described, state.updates))

    def _placed(self, name: str, weight: object, arrays: Arrays) -> tuple[Named, Arrays]:
        """Place the saved arrays of a parameter's update; return them, and those that the rule does not know."""
        expected = jax.eval_shape(self.update.rule_of(name).start, weight)
        place = self.strategy.placement.place
        return {key: place(np.asarray(arrays.pop(key), expected[key].dtype)) for key in expected}, arrays

    def _fits(self, name: str, arrays: Arrays) -> bool:
        """Return whether the rule of a parameter can continue with these arrays."""
        shape = tuple(reversed(self.network.nodes[name].shape or ()))
        weight = jax.ShapeDtypeStruct(shape, self.network.dtype)
        expected = jax.eval_shape(self.update.rule_of(name).start, weight)
        return all(key in arrays and arrays[key].shape == array.shape for key, array in expected.items())

    # ---- to the host

    def weights(self, state: TrainState) -> Named:
        """Return the parameters under training by name; those of vectors are NumPy's."""
        return _apart(self.vectors, state.weights, self.strategy.placement.fetch)

    def values(self, state: TrainState) -> Arrays:
        """Return the parameters and the network's state by name."""
        fetch = self.strategy.placement.fetch
        return {name: fetch(array) for name, array in {**state.network, **self.weights(state)}.items()}

    def updates(self, state: TrainState, names: Iterable[str] | None = None) -> UpdateState:
        """Return the arrays of the update rule, of all parameters or of some, with what the strategy saves of them."""
        fetch, kept = self.strategy.placement.fetch, self.strategy.averaging.saved_updates()
        arrays = _updates_apart(self.vectors, state.updates, fetch)
        return {
            name: jax.tree.map(fetch, arrays[name]) | self._unused.get(name, {}) | kept.get(name, {})
            for name in (arrays if names is None else names)
        }

    def snapshot(self, state: TrainState) -> Arrays:
        """Return everything that changes while training, of all workers, as flat arrays."""
        parts = {"weight": self.weights(state), "state": state.network}
        arrays = {f"{part}\n{name}": value for part, values in parts.items() for name, value in values.items()}
        for name, update in _updates_apart(self.vectors, state.updates, self.strategy.placement.fetch).items():
            arrays |= {f"update\n{name}\n{key}": value for key, value in update.items()}
        saved = {
            name: self.strategy.placement.fetch_all(value, name.endswith(CARRIED)) for name, value in arrays.items()
        }
        return saved | {f"kept\n{name}": value for name, value in self.strategy.averaging.save_state().items()}

    def restored(self, keys: dict[str, list[str]], arrays: Arrays) -> TrainState:
        """Return the state of a snapshot.

        Args:
            keys: by name of a parameter or key of a vector, the names of the arrays of its update rule.
            arrays: the snapshot.
        """
        place = self.strategy.placement.place
        kept = [path for path in arrays if path.startswith("kept\n")]
        self.strategy.averaging.restore_state({path.removeprefix("kept\n"): arrays.pop(path) for path in kept})
        state = TrainState({}, {name: {} for name in keys}, {}, self.strategy.placement.flag())
        for flat in self.vectors:
            state.weights[flat.key] = place(flat.join({n: arrays.pop(f"weight\n{n}") for n in flat.names}))
            for key in keys[flat.key]:
                joined = _joined(flat, {name: arrays.pop(f"update\n{name}\n{key}") for name in flat.names})
                state.updates[flat.key][key] = place(joined)
        for path in list(arrays):
            part, name, *key = path.split("\n")
            array = self.strategy.placement.place_all(arrays.pop(path), name.endswith(CARRIED))
            if part == "update":
                state.updates[name][key[0]] = array
            else:
                (state.weights if part == "weight" else state.network)[name] = array
        return state


def _apart(flats: Sequence[Flat], arrays: Named, fetch: Callable[[Array], HostArray]) -> Named:
    """Return arrays by the names of parameters, sorted.

    Args:
        flats: vectors that may be among them.
        arrays: of parameters and vectors.
        fetch: makes an array one of NumPy.
    """
    named = dict(arrays)
    for flat in flats:
        if flat.key in named:
            named |= flat.split(fetch(named.pop(flat.key)))
    return dict(sorted(named.items()))


def _updates_apart(
    flats: Sequence[Flat], updates: dict[str, Named], fetch: Callable[[Array], HostArray]
) -> dict[str, Named]:
    """Return by name of the parameter the arrays of its update rule; see `_apart`."""
    named = dict(updates)
    for flat in flats:
        if flat.key in named:
            arrays = {key: _split(flat, fetch(value)) for key, value in named.pop(flat.key).items()}
            named |= {name: {key: parts[name] for key, parts in arrays.items()} for name in flat.names}
    return dict(sorted(named.items()))


def _joined_update(
    flat: Flat, updates: dict[str, Named], start: Callable[[Any], Named], vector: Any
) -> tuple[Named, dict[str, Named]]:
    """Join the arrays of an update rule for a vector.

    Args:
        flat: the vector.
        updates: by name of the parameter, the arrays that are known; those of the vector are removed.
        start: makes the arrays of a parameter before its first update.
        vector: the parameters.

    Returns:
        The arrays, and by name of the parameter those that the rule does not know.
    """
    first = start(vector)
    if not any(name in updates for name in flat.names):
        return first, {}
    parts = flat.split(np.zeros(vector.shape, vector.dtype))
    arrays = {name: dict(updates.pop(name)) if name in updates else start(part) for name, part in parts.items()}
    joined = {key: _joined(flat, {name: arrays[name].pop(key) for name in flat.names}) for key in first}
    return {key: np.asarray(array, first[key].dtype) for key, array in joined.items()}, arrays


def _share_numbers(flat: Flat, updates: dict[str, Named], rule: Rule) -> bool:
    """Return whether the numbers of an update rule are the same for all parameters of a vector."""
    start = rule.start(np.zeros((1,)))
    numbers = {key: value for key, value in start.items() if not np.shape(value)}
    return all(
        np.array_equal(updates.get(name, numbers)[key], updates.get(flat.names[0], numbers)[key])
        for key in numbers
        for name in flat.names
    )


def _joined(flat: Flat, arrays: Named) -> NDArray[Any]:
    """Return the vector of arrays by name, or the number that is the same for all of them."""
    first = np.asarray(arrays[flat.names[0]])
    return flat.join(arrays) if first.ndim else first


def _split(flat: Flat, array: HostArray) -> Named:
    """Return by name the parts of a vector, or copies of a number."""
    return flat.split(array) if np.ndim(array) else {name: np.array(array) for name in flat.names}
