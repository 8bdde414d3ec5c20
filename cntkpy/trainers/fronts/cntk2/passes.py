"""Functions in training mode: values, and gradients that belong to them."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from scipy.sparse import csr_matrix  # pyright: ignore[reportMissingTypeStubs]

from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.arrays.sparse import is_sparse
from cntkpy.networks.builders.python.functions.blocks import has_sparse_gradient
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.per_sample import per_sample
from cntkpy.networks.compile.evaluate import LENGTHS, network_parameters, network_state
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.host.kinds import raise_failure
from cntkpy.networks.nodes.sampling.kinds import DRAWN
from cntkpy.readers import Value
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2.checks import check_type
from cntkpy.trainers.fronts.cntk2.samples import Results
from cntkpy.trainers.fronts.cntk2.values import Values, evaluate, values_of
from cntkpy.trainers.step.sequence_problems import check_sequences
from cntkpy.trainers.step.stack import Stack

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import PRNGKeyArray


@dataclass(eq=False)
class TrainingPass:
    """A computation in training mode, with what its gradients depend on: the same parameters, data and random numbers.

    Attributes:
        values: computes the functions.
        kept: those of them that have gradients.
        arguments: those of the computation: parameters, state, minibatch, key of random numbers.
        stack: the data; None: there are none.
        results: what the computation gave, by name; None: it was not done yet.
        is_used: whether `backward` has gone through it.
    """

    values: Values
    kept: Sequence[Function]
    arguments: tuple[Mapping[str, Any], Mapping[str, Any], Batch, Any]
    stack: Stack | None
    results: Mapping[str, Any] | None = None
    is_used: bool = False

    @classmethod
    def of(cls, values: Values, kept: Sequence[Function], arguments: object) -> TrainingPass:
        """Return the computation of functions for some data, to be done by `compute` or with the first gradients."""
        batch, stack = values.batch({} if arguments is None else arguments)
        values.draws.passes += 1
        number = 0 if values.names_seed else values.draws.number
        key = _key_of_pass()(np.uint32(number % 2**32), np.uint32(values.draws.passes))
        state = network_state(values.network) | values.draws.trained
        inputs = network_parameters(values.network), state, batch, key
        return cls(values, kept, inputs, stack)

    def compute(self) -> Results:
        """Return the values by name; batch normalisation gets the running statistics when they are computed."""
        return self._done(*self.values.training.values(*self.arguments)) if self.results is None else self.results

    def _done(self, results: Mapping[str, Array], after: Mapping[str, Array]) -> Mapping[str, Array]:
        """Keep the first results."""
        jax.block_until_ready(results)
        raise_failure()
        if self.results is None:
            check_sequences(self.values.network, after)
            self.values.keep_statistics(after)
            self.values.draws.trained = {name: drawn for name, drawn in after.items() if name.endswith(DRAWN)}
            self.results = results
        return self.results

    def value(self, function: Function) -> Any:
        """Return the value of one of the functions, see `Function.eval`."""
        return self.values.samples.of(self._node(function), jax.device_get(dict(self.compute())), self.stack)

    def ones(self, function: Function) -> Any:
        """Return a gradient of 1 for each element of the value of a function."""
        value = self.values.samples.of(self._node(function), self._alike(function), self.stack)
        return [np.ones_like(array) for array in value] if isinstance(value, list) else np.ones_like(value)

    def _node(self, function: Function) -> Node:
        return self.values.output_nodes[self.values.outputs.index(function)]

    def _alike(self, function: Function) -> Results:
        """Values with the samples that those of a function have; before it is computed zeros, if that suffices."""
        if self.results is not None:
            return self.results
        shapes = self.values.training.shapes(self.arguments)
        if any(name.endswith(LENGTHS) for name in shapes):  # how many samples there are depends on the data
            return self.compute()
        name = self._node(function).name
        return {name: np.zeros(shapes[name].shape, shapes[name].dtype)}

    def gradients(self, roots: Mapping[Function, object], wanted: Sequence[Function]) -> dict[Function, object]:
        """Return the gradients of the sum of functions, each multiplied by what is given for it.

        Args:
            roots: by function, an array like its value, or a list of them for sequences.
            wanted: parameters and inputs.

        Returns:
            By parameter an array of its shape, by input the gradients of its samples.
        """
        factors: dict[str, Any] = {}
        for function, gradient in roots.items():
            node = self._node(function)
            cells = self.values.samples.cells(node, gradient, self._alike(function), self.stack)
            factors[node.name] = cells + factors.get(node.name, 0)
        parameters, state, batch, key = self.arguments
        nodes = {variable: node for variable in wanted if (node := self.values.node_of(variable.root)) is not None}
        trained = {node.name: parameters[node.name] for variable, node in nodes.items() if variable.is_parameter}
        data = {
            node.name: _dense(batch.inputs[node.name], node) for variable, node in nodes.items() if variable.is_input
        }
        fixed = {name: array for name, array in parameters.items() if name not in trained}
        *done, (of_own, of_data) = self.values.training.gradients((trained, data), factors, (fixed, state, batch, key))
        self.values.assign(self._done(*done))
        of_own, of_data = jax.device_get((of_own, of_data))
        result: dict[Function, Any] = {}
        for variable, node in nodes.items():
            if variable.is_input:
                gradient = self.values.samples.of(node, {node.name: of_data[node.name]}, self.stack)
                gradient = gradient.sum(axis=0) if variable in self.values.arguments.repeated else gradient
            else:
                gradient = of_own[node.name].reshape(variable.shape)
            result[variable] = _of_type(gradient, variable.dtype)
        raise_failure()
        return result


@cache
def _key_of_pass() -> Callable[[np.uint32, np.uint32], PRNGKeyArray]:
    """Return a jitted function of a seed and the number of a pass: the key of its random numbers."""

    def key_of_pass(seed: Array, number: Array) -> PRNGKeyArray:
        return jax.random.fold_in(jax.random.key(seed), number)

    return jax.jit(key_of_pass)


def _of_type(gradient: Any, dtype: np.dtype[np.generic]) -> Any:
    """Return a gradient in the precision of its variable; a cast may have computed it in another one."""
    if isinstance(gradient, list):
        return [array.astype(dtype, copy=False) for array in gradient]
    return gradient.astype(dtype, copy=False)


def _dense(array: Any, node: Node) -> Array:
    """Return the data of an input as a dense array, by which it has a gradient."""
    return array.dense(node.shape) if is_sparse(array) else array


def forward(
    arguments: object, outputs: Sequence[Function], kept: Sequence[Function], as_numpy: bool
) -> tuple[TrainingPass | None, dict[Function, object]]:
    """See `Function.forward`."""
    if not kept:
        value = evaluate(outputs[0], arguments, outputs, as_numpy)
        return None, _lent(value if len(outputs) > 1 else {outputs[0]: value}, as_numpy)
    values = values_of([*outputs, *(function for function in kept if function not in outputs)], arguments)
    state = TrainingPass.of(values, kept, arguments)
    state.compute()
    by_function = {function: _given(state, function, state.value(function), as_numpy) for function in outputs}
    return state, _lent(by_function, as_numpy)


_LENT = "_lent"
"""The attribute of a node for the last `Value` of it that `forward` has given."""


def _lent(values: dict[Function, object], as_numpy: bool) -> dict[Function, object]:
    """Return the values of `forward`; those of the call before are invalid, as in CNTK."""
    for function, value in {} if as_numpy else values.items():
        attributes = vars(function.root)
        previous: Value | None = attributes[_LENT]() if _LENT in attributes else None
        if previous is not None and previous is not value:
            previous.erase()
        attributes[_LENT] = ref(value)
    return values


def backward(state: object, roots: Mapping[Function, object], variables: Iterable[Function], as_numpy: bool) -> Any:
    """See `Function.backward`."""
    if not isinstance(state, TrainingPass):
        message = "there is no forward pass to go back through"
        raise ArgumentError(message, "state, values = f.forward(data, keep_for_backward=f.outputs)")
    if state.is_used:
        message = "backward has gone through this forward pass already"
        raise ArgumentError(message, "call forward again, or give backward all variables at once")
    for function in roots:
        if function not in state.kept:
            raise ArgumentError(
                f"{function!r} was not kept for backward", "keep_for_backward takes the outputs it is for"
            )
    wanted = _variables(state.values, variables)
    results = state.gradients(roots, wanted)
    state.is_used = True
    return {function: _given_gradient(state, function, gradient, as_numpy) for function, gradient in results.items()}


def gradients(function: Function, at: object, wrt: Any, outputs: Any, root: Function | None, as_numpy: bool) -> Any:
    """See `Function.grad`."""
    root = function.output if root is None else root.output
    if wrt is None:
        wrt = [variable for variable in root.arguments if variable.needs_gradient] or root.arguments
    several: list[Any] = [wrt] if isinstance(wrt, Function) else list(wrt)
    if not several:
        raise ArgumentError("the function has no inputs", "say what to differentiate by: wrt=[parameter, ...]")
    extra = [outputs] if isinstance(outputs, Function) else list(outputs or ())
    values = values_of([*dict.fromkeys([root, *extra])], at)
    wanted = _variables(values, several, root)
    state = TrainingPass.of(values, [root], at)
    results = state.gradients({root: state.ones(root)}, wanted)
    converted = {variable: _given_gradient(state, variable, array, as_numpy) for variable, array in results.items()}
    answer = converted[wanted[0]] if len(wanted) == 1 else converted
    if not extra:
        return answer
    shown = {variable: _given(state, variable, state.value(variable), as_numpy) for variable in extra}
    return answer, shown[extra[0]] if len(extra) == 1 else shown


def _variables(values: Values, variables: Iterable[Function], root: Function | None = None) -> list[Function]:
    """Return the variables to differentiate by; `root` is differentiated, or None: several functions are.

    Raises:
        ArgumentError: it is not a parameter or input that the functions depend on.
    """
    wanted = [variables] if isinstance(variables, Function) else list(variables)
    for variable in wanted:
        check_type("what to differentiate by", variable, Function, "wrt=[z.W], or wrt=z.parameters")
        node = values.node_of(variable.root)
        if node is None or not (variable.is_input or variable.is_parameter):
            subject = "the function" if root is None else repr(root)
            raise ArgumentError(
                f"{subject} does not depend on {variable!r}", "its parameters and inputs have gradients"
            )
    return wanted


def _given_gradient(state: TrainingPass, variable: Function, gradient: Any, as_numpy: bool) -> Any:
    """Return a gradient as it was asked for; a `Value` of some is sparse."""
    if as_numpy or not has_sparse_gradient(variable.root):
        return _given(state, variable, gradient, as_numpy)
    return Value.of_rows(csr_matrix(gradient.reshape(1, -1)), gradient.shape)


def _given(state: TrainingPass, function: Function, value: object, as_numpy: bool) -> Any:
    """Return the values or the gradient of a function as they were asked for."""
    if as_numpy:
        return value
    values = state.values
    is_one = function in values.arguments.repeated  # its gradient is summed over the minibatch
    node = values.node_of(per_sample(function.root))
    return Value.of_result(value, not is_one and node is not None and values.samples.has_batch(node))
