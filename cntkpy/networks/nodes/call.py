"""Argument of a forward function of a node kind: the node, and what it may look at besides its inputs."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from cntkpy.networks.arrays.batch import Batch, Grid, PackedGrid
from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.arrays.numbers import Numbers
from cntkpy.networks.graph.axes import fallible
from cntkpy.networks.graph.node import Node

if TYPE_CHECKING:
    from jax.typing import DTypeLike
    from jaxtyping import Bool, Float, Shaped

    from cntkpy.networks.graph.shapes import Shape

    class ValidNode(Node):
        """A node of a validated network, for the type checker: its shape is known."""

        shape: Shape  # pyright: ignore[reportIncompatibleVariableOverride]

        def input(self, index: int) -> ValidNode:
            """Return input `index`."""
            ...


NO_SEED = 0
"""The `seed` option of a random node whose numbers depend on its place in the network."""

_SEEDED = 2**32 - 1
"""Separates the keys of seeds from those of places."""


class Settings(NamedTuple):
    """Settings that the trainer may change from epoch to epoch.

    Attributes:
        dropout_rate: scalar; None: dropout is off and costs nothing.
        bn_time_constant: overrides the time constant of BatchNormalization nodes; None: their own.
        bn_blend_time_constant: the same for blending.
    """

    dropout_rate: Float[Array, ""] | float | None = None
    bn_time_constant: Float[Array, ""] | float | None = None
    bn_blend_time_constant: Float[Array, ""] | float | None = None


DEFAULT_SETTINGS = Settings()


class Context:
    """Context of a forward function besides its inputs: a minibatch on one time axis, and what all axes share.

    Attributes:
        T, S: time steps and slots.
        mask, to_start, to_end: see `Batch`.
        numbers: the types of the values of nodes.
        problems: by name of a node, whether it found sequences that do not fit.
        packed: where the sequences lie, if they share slots and the network has several time axes.
        matrices: by the names of parameters that lie side by side, what they are together.
    """

    def __init__(
        self,
        batch: Batch,
        grid: tuple[int, int],
        dtype: DTypeLike,
        training: bool,
        key: Array | None,
        settings: Settings,
    ):
        self.T, self.S = grid
        self.mask, self.to_start, self.to_end = batch.mask, batch.to_start, batch.to_end
        self.dtype = dtype
        self.numbers = Numbers(dtype)
        self.training = training
        self.key = key
        self.settings = settings
        self.state: Mapping[str, Array] = {}
        self.new_state: dict[str, Array] = {}
        self.gathered: Mapping[str, Array] = {}
        self.matrices: Mapping[tuple[str, ...], Array] = {}
        self.problems: dict[str, Array] = {}
        self.packed: PackedGrid | None = None
        self._grids: dict[str, Grid | PackedGrid] = dict(batch.axes or {})
        self._whole: Mapping[str | None, Array] = {}

    def step(
        self,
        mask: Array | None,
        to_start: Array | None,
        to_end: Array | None,
        key: Array | None,
        whole: Mapping[str | None, Array],
        steps: int = 1,
    ) -> Context:
        """Return the context of one time step inside a loop, or of a block of steps.

        Args:
            mask: of the step, (steps, slots); None: all slots have samples.
            to_start: of the step.
            to_end: of the step.
            key: for random numbers.
            whole: by axis, the masks of the sequences that nodes of the loop see as a whole.
            steps: how many there are.
        """
        size = steps, self.S if mask is None else mask.shape[1]
        inner = Context(Batch({}, mask, to_start, to_end), size, self.dtype, self.training, key, self.settings)
        inner.state, inner.new_state, inner.gathered = self.state, self.new_state, self.gathered
        inner.numbers = self.numbers
        inner._whole = whole
        return inner

    def on(self, axis: str | None) -> Context:
        """Return the same on another time axis; this one where there is only one."""
        if axis is None or axis not in self._grids:
            return self
        grid = self._grids[axis]
        batch = Batch({}, grid.mask, grid.to_start, grid.to_end)
        context = Context(batch, grid.mask.shape, self.dtype, self.training, self.key, self.settings)
        context.packed = grid if isinstance(grid, PackedGrid) else None
        context.state, context.new_state, context.gathered = self.state, self.new_state, self.gathered
        context.problems, context._grids, context.numbers = self.problems, self._grids, self.numbers
        context.matrices = self.matrices
        return context

    def apart(self) -> Context:
        """Return a copy; what nodes add to it is not added to this one."""
        context = copy.copy(self)
        context.new_state, context.problems, context._grids = (
            dict(self.new_state),
            dict(self.problems),
            dict(self._grids),
        )
        return context

    def grid(self, axis: str | None) -> Grid | PackedGrid:
        """Return the places of the sequences on a time axis."""
        on = self.on(axis)
        if on.packed is not None:
            return on.packed
        mask = jnp.ones((on.T, on.S), bool) if on.mask is None else on.mask
        return Grid(mask, on.to_start, on.to_end)

    def whole(self, axis: str | None) -> Array:
        """Return the mask of all steps of an axis, inside of a loop as well."""
        mask = self._whole.get(axis)
        return self.grid(axis).mask if mask is None else mask

    def add_grid(self, axis: str | None, grid: Grid) -> None:
        """Add the grid of an axis that a node makes."""
        if axis is not None:
            self._grids.setdefault(axis, grid)

    def samples(self) -> Array | int:
        """Number of real cells, as a number or a traced scalar."""
        return self.T * self.S if self.mask is None else jnp.sum(self.mask).astype(self.dtype)


class Call:
    """One use of an operation: the node, and what `Context` has.

    Attributes:
        node: the node; its shape and those of its operands are known, since the network is valid.
        context: time steps, slots, masks, random numbers.
        options: options of the node.
        order: the node's place in the network.
    """

    def __init__(self, node: Node, context: Context, order: int = 0) -> None:
        self.node = cast("ValidNode", node)
        self.context = context
        self.options = node.options
        self.order = order

    def random_key(self, key: Array) -> Array:
        """Return the key of this node's random numbers, made of one that all nodes share.

        Nodes with the same `seed` option draw the same numbers. The others differ by their place in the network.
        """
        seed = self.options.get("seed", NO_SEED)
        if seed == NO_SEED:
            return jax.random.fold_in(key, self.order)
        return jax.random.fold_in(jax.random.fold_in(key, _SEEDED), int(seed) % 2**32)

    def problem(self, mismatch: object) -> None:
        """Note the slots whose sequences do not fit, or whether there are such."""
        if fallible(self.node):
            self.context.problems[self.node.name] = jnp.any(mismatch)

    def flat(self, array: Shaped[Array, " *axes"], index: int = 0) -> Shaped[Array, "*cells n"]:
        """Input `index` with its sample axes joined: `(T, S, n)`, or `(n,)` without layout."""
        if self.node.input(index).has_layout:
            return array.reshape(*array.shape[:2], -1)
        return array.reshape(-1)

    def masked(self, array: Shaped[Array, "T S ..."], value: float = 0.0) -> Shaped[Array, "T S ..."]:
        """`array` (with T, S in front) with its gap cells replaced."""
        return masked(array, self.context.mask, value)

    def total(self, cells: Float[Array, "T S ..."]) -> Float[Array, " 1"]:
        """Sum of per-cell values `(T, S, ...)` over the real cells, as a criterion's value of shape `(1,)`."""
        return jnp.sum(self.masked(cells)).reshape(1)


def masked(
    array: Shaped[Array, "T S ..."], mask: Bool[Array, "T S"] | None, value: float = 0.0
) -> Shaped[Array, "T S ..."]:
    """`array` `(T, S, ...)` with `value` where `mask` `(T, S)` is False; unchanged if `mask` is None."""
    if mask is None:
        return array
    return jnp.where(mask.reshape(*mask.shape, *(1,) * (array.ndim - 2)), array, jnp.asarray(value, array.dtype))
