"""Nodes that Python code of the process computes: the user-defined functions of CNTK 2.

The compiled program calls the host once for the value of such a node, and once for its gradient.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from cntkpy.cntk_config.base.diagnostics import UserError, shorten
from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.arrays.lazy import Array, Gradients, Residuals, custom_gradient, io_callback, jax
from cntkpy.networks.graph.shapes import Shape
from cntkpy.networks.nodes.declare import Argument, NodeKind, TimeRule

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from cntkpy.networks.graph.node import Node
    from cntkpy.networks.nodes.call import Call


if TYPE_CHECKING:
    Samples = NDArray[np.generic] | list[NDArray[np.generic]]
"""The samples of a node without padding: an array (samples, *sample), a list of sequences (steps, *sample), or, of a
node without dynamic axes, an array (*sample)."""

HOST, DIMS = "host", "dims"
"""Options: the `HostFunction`, and the shape of a sample of the result."""

MAX_STATES = 16
"""Number of states of forward calls that are kept for backward calls that have not come yet."""


class HostFunction(Protocol):
    """Python code that computes a node.

    Attributes:
        dynamic: for each operand how many dynamic axes it has.
    """

    dynamic: tuple[int, ...]

    def forward(self, operands: list[Samples]) -> tuple[object, Samples]:
        """Return a state for `backward`, and the value: samples like those of the operands with the most dynamic
        axes.
        """
        ...

    def backward(self, state: object, gradient: Samples) -> list[Samples | None]:
        """Return the gradient by each operand, of the gradient by the value; None: it is 0."""
        ...

    def stored(self) -> dict[str, object]:
        """Return the description for a model file, JSON-able: `StoredHost` is made of it."""
        ...


class StoredHost:
    """A user-defined function of a model file, whose code has not been found.

    Args:
        operation: its name.
        state: what its code said of it.
        dynamic: see `HostFunction`.
    """

    def __init__(self, operation: str, state: object, dynamic: Sequence[int]) -> None:
        self.operation, self.state, self.dynamic = operation, state, tuple(dynamic)

    def forward(self, operands: list[Samples]) -> tuple[object, Samples]:
        """Nothing.

        Raises:
            UserError: always.
        """
        raise self._missing()

    def backward(self, state: object, gradient: Samples) -> list[Samples | None]:
        """See `forward`."""
        raise self._missing()

    def stored(self) -> dict[str, object]:
        """Return the description that it was made of."""
        return {"operation": self.operation, "state": self.state, "dynamic": list(self.dynamic)}

    def _missing(self) -> UserError:
        return UserError(
            "NoFunction",
            f"the model has a user-defined function '{self.operation}', whose Python code is not known",
            hint="before load_model, import its class, or call Function.register_udf_deserialize_callback",
        )


_failures: list[BaseException] = []
"""Errors that Python code has raised inside of a compiled program, which has NaN as the value then."""


def is_failed() -> bool:
    """Return whether Python code has raised something inside of a compiled program."""
    return bool(_failures)


def raise_failure() -> None:
    """Raise an error of Python code inside of a compiled program; its results were waited for."""
    if _failures:
        first = _failures[0]
        _failures.clear()
        raise first


class _States:
    """States of forward calls, by number, until the backward call takes them."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._kept: OrderedDict[int, object] = OrderedDict()

    def put(self, state: object) -> int:
        """Return the number of a state."""
        number = next(self._numbers)
        self._kept[number] = state
        while len(self._kept) > MAX_STATES:
            self._kept.popitem(last=False)
        return number

    def take(self, number: int) -> object:
        """Return the state of a number, which is kept no longer."""
        return self._kept.pop(number)


def samples_of(array: NDArray[np.generic], mask: NDArray[np.bool_], dynamic: int) -> Samples:
    """Return the samples of an array (T, S, *sample) without padding; see `Samples`."""
    if dynamic == 0:
        return array
    if dynamic == 1:
        return np.swapaxes(array, 0, 1)[mask.T]
    return [array[mask[:, slot], slot] for slot in range(mask.shape[1]) if mask[:, slot].any()]


def in_cells(
    samples: Samples, mask: NDArray[np.bool_], shape: tuple[int, ...], dtype: DTypeLike, dynamic: int, subject: str
) -> NDArray[np.generic]:
    """Return the inverse of `samples_of`; padding is 0.

    Args:
        samples: the samples; sequences of one length may be an array (sequences, steps, *sample).
        mask: (T, S), where there are samples.
        shape: of the result: (T, S, *sample), or (*sample) without dynamic axes.
        dtype: of the result.
        dynamic: how many dynamic axes the samples have.
        subject: begins the message of an error.

    Raises:
        UserError: they have another number or another shape.
    """
    if dynamic == 0:
        return _shaped(samples, shape, dtype, subject)
    if dynamic == 2:
        lengths = [int(length) for length in mask.sum(axis=0) if length]
        counts = [len(np.atleast_1d(sample)) for sample in samples]
        if counts != lengths:
            message = f"{subject} has sequences of {shorten(str(counts))} steps, {shorten(str(lengths))} are expected"
            raise UserError("BadShape", message)
        samples = np.concatenate(
            [np.asarray(sample).reshape(steps, -1) for sample, steps in zip(samples, counts, strict=True)]
        )
    cells = np.zeros((mask.shape[1], mask.shape[0], *shape[2:]), dtype)
    cells[mask.T] = _shaped(samples, (int(mask.sum()), *shape[2:]), dtype, subject)
    return np.swapaxes(cells, 0, 1)


def _shaped(value: Samples, shape: tuple[int, ...], dtype: DTypeLike, subject: str) -> NDArray[np.generic]:
    array = np.asarray(value)
    if array.size != np.prod(shape):
        raise UserError("BadShape", f"{subject} has the shape {array.shape}, {shape} is expected")
    return array.reshape(shape).astype(dtype, copy=False)


def _shape(node: Node) -> Shape | None:
    """Return the shape that the code has said."""
    return tuple(node.options[DIMS])


def _computed(call: Call, *operands: Array) -> Array:
    """Return the value that the host computes."""
    host: HostFunction = call.options[HOST]
    if isinstance(host, StoredHost):
        host.forward([])
    mask = call.context.grid(call.node.axis).mask
    dims = tuple(reversed(call.node.shape))
    if not call.node.has_layout:
        return _function(host, dims, 0, call.context.dtype, call.node.name)(mask, *operands)
    return _function(host, (*mask.shape, *dims), max(host.dynamic), call.context.dtype, call.node.name)(mask, *operands)


def _function(
    host: HostFunction, shape: tuple[int, ...], dynamic: int, dtype: DTypeLike, name: str
) -> Callable[..., Array]:
    """Return the function of a mask and of operands that the host computes, with its gradient."""
    states = _States()
    result = jax.ShapeDtypeStruct(shape, dtype)
    number = jax.ShapeDtypeStruct((), np.int64)

    def value(mask: Array | None, *operands: Array) -> tuple[object, NDArray[np.generic]]:
        steps = np.asarray(mask)
        pairs = zip(operands, host.dynamic, strict=True)
        try:
            state, results = host.forward([samples_of(np.asarray(operand), steps, axes) for operand, axes in pairs])
            return state, in_cells(results, steps, shape, dtype, dynamic, f"the value of '{name}'")
        except BaseException as error:  # JAX would make one of its own of it, of SystemExit as well
            _failures.append(error)
            return None, np.full(shape, np.nan, dtype)

    def value_only(mask: Array | None, *operands: Array) -> NDArray[np.generic]:
        return value(mask, *operands)[1]

    def value_and_state(mask: Array | None, *operands: Array) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
        state, result = value(mask, *operands)
        return result, np.asarray(states.put(state))

    def zeros(operands: tuple[Array, ...]) -> tuple[NDArray[np.generic], ...]:
        return tuple(np.zeros(operand.shape, operand.dtype) for operand in operands)

    def gradients(
        ticket: Array, mask: Array | None, gradient: Array, *operands: Array
    ) -> tuple[NDArray[np.generic], ...]:
        places, state = np.asarray(mask), states.take(int(ticket))
        if _failures:
            return zeros(operands)
        try:
            gradients = host.backward(state, samples_of(np.asarray(gradient), places, dynamic))
            return tuple(
                like
                if gradient is None
                else in_cells(gradient, places, like.shape, like.dtype, axes, f"a gradient of '{name}'")
                for gradient, like, axes in zip(gradients, zeros(operands), host.dynamic, strict=True)
            )
        except BaseException as error:
            _failures.append(error)
            return tuple(np.full(operand.shape, np.nan, operand.dtype) for operand in operands)

    def primal(mask: Array, *operands: Array) -> Array:
        return io_callback(value_only, result, mask, *operands)

    def forward(mask: Array, *operands: Array) -> tuple[Array, Residuals]:
        computed, ticket = io_callback(value_and_state, (result, number), mask, *operands)
        return computed, (ticket, mask, operands)

    def backward(kept: Residuals, gradient: Array) -> Gradients:
        ticket, mask, operands = kept
        kinds = tuple(jax.ShapeDtypeStruct(operand.shape, operand.dtype) for operand in operands)
        return None, *io_callback(gradients, kinds, ticket, mask, gradient, *operands)

    return custom_gradient(forward, backward, primal)


KINDS = [
    NodeKind(
        "UserFunction",
        ((Argument("operands", many=True),),),
        "What Python code computes.",
        shape=_shape,
        forward=_computed,
        time=TimeRule(own_slots=True, reduces_time=True),
    )
]
"""Only programs make such nodes: no language has a name for them."""
