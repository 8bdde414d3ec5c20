"""Matrix products inside loops, with weights that are the same at all steps.

Products with the same right operand are one product per step. What comes from outside of the loop and is only added to
a product, as the inputs of a gate and its bias, is summed up before the loop for all steps. The gradient of the
weights is one product after the loop, over all steps, not a sum that each step adds to.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cntkpy.networks.arrays.lazy import Array, Gradients, Residuals, custom_gradient, jax, jnp
from cntkpy.networks.arrays.products import dot
from cntkpy.networks.arrays.sparse import is_sparse
from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.network import Node
from cntkpy.networks.nodes.call import Context

if TYPE_CHECKING:
    from jaxtyping import Float

    from cntkpy.networks.arrays.sparse import Sparse

Values = Mapping[Node, Any]
Loop = Callable[[list[Array], Any, Any], tuple[Any, list[Array]]]


def _plain(x: Array, weights: Array, added: Array) -> Array:
    return dot(x, weights)


def _plain_forward(x: Array, weights: Array, added: Array) -> tuple[Array, Array]:
    return dot(x, weights), weights


def _late_backward(weights: Array, g: Array) -> Gradients:
    return dot(g, weights, (-1, -1)), None, g


_late = custom_gradient(_plain_forward, _late_backward, _plain)
"""x W, whose gradient by W is left out; `added`, which counts as 0, gets the gradient of the result."""


class JoinedProduct:
    """Products of a loop with the same right operand, and what is added to them.

    Args:
        nodes: the products.
        added: for each product the nodes outside of the loop that are added to it.
    """

    def __init__(self, nodes: list[Node], added: list[list[Node]]) -> None:
        self.nodes, self.added = nodes, added
        self.operand = nodes[0].input(1)
        self._widths = [_rows(node) for node in nodes]

    def weights(self, values: Values, context: Context) -> Float[Array, "inner width"]:
        """Return the weights of all products, side by side."""
        return _side_by_side(self.nodes, values, context)

    def side_by_side(self) -> list[tuple[list[int], list[Node]]]:
        """Widths and nodes of what is read side by side: the weights, and what is added, if it is alike."""
        groups = [(self._widths, [node.input(0) for node in self.nodes])]
        for leaves in itertools.zip_longest(*self.added):
            pairs = [(leaf, node) for leaf, node in zip(leaves, self.nodes, strict=True) if leaf is not None]
            if len(pairs) < len(self.nodes):
                continue
            if all(_is_product(leaf) and _rows(leaf) == _rows(node) for leaf, node in pairs):
                groups.append((self._widths, [leaf.input(0) for leaf in leaves]))
            elif all(
                shapes.size(leaf.shape or ()) == shapes.size(node.shape or ()) == _rows(node) for leaf, node in pairs
            ):
                groups.append((self._widths, list(leaves)))
        return groups

    def sums(self, plan: Plan, values: Values, context: Context) -> Float[Array, "T rows width"]:
        """Return the terms added at each step; zeros, which are not read, if there are none."""
        rows = context.S * shapes.size(self.nodes[0].shape or ()) // self._widths[0]
        terms = [self._term(leaves, plan, values, context) for leaves in itertools.zip_longest(*self.added)]
        total = functools.reduce(jnp.add, terms) if terms else jnp.zeros((), context.dtype)
        return jnp.broadcast_to(context.numbers.factor(total), (context.T, rows, sum(self._widths)))

    def _term(self, leaves: tuple[Node | None, ...], plan: Plan, values: Values, context: Context) -> Array:
        """Return one node added to each product, side by side: `(T, rows, width)` or `(width,)`."""
        first = leaves[0]
        pairs = list(zip(self.nodes, leaves, strict=True))
        if first is not None and all(_like(first, *pair, plan, values) for pair in pairs):
            x = context.numbers.factor(values[first.input(1)])
            weights = context.numbers.factor(
                _side_by_side([leaf for leaf in leaves if leaf is not None], values, context)
            )
            return dot(x.reshape(-1, len(weights)), weights).reshape(context.T, -1, weights.shape[1])
        whole = context.matrices.get(tuple(leaf.name for leaf in leaves if leaf is not None))
        if whole is not None:
            return whole.reshape(-1)
        parts = [_spread(*pair, values, context) for pair in pairs]
        lead = jnp.broadcast_shapes(*(part.shape[:-1] for part in parts))
        return jnp.concatenate([jnp.broadcast_to(part, (*lead, part.shape[-1])) for part in parts], axis=-1)

    def at(self, x: Array, weights: Array, added: Array) -> dict[Node, Array]:
        """Return the products and what is added to them at one step, whose operand is `x`, `(1, S, ...)`."""
        lead, x = x.shape[:2], x.reshape(-1, len(weights))
        product = dot(x, weights) + added if any(self.added) else _late(x, weights, added)
        ends = list(itertools.accumulate(self._widths[:-1]))
        parts = jnp.split(product, ends, axis=1)  # its gradient joins the parts; that of slices would add them up
        return {
            node: part.reshape(*lead, *reversed(node.shape or ())) for node, part in zip(self.nodes, parts, strict=True)
        }


def _rows(product: Node) -> int:
    return shapes.matrix(product.input(0).shape or (1,))[0]


def _side_by_side(products: list[Node], values: Values, context: Context) -> Array:
    whole = context.matrices.get(tuple(node.input(0).name for node in products))
    if whole is not None:
        return whole
    return jnp.concatenate([values[node.input(0)].reshape(-1, _rows(node)) for node in products], axis=1)


def _is_product(node: Node) -> bool:
    return node.kind.product and node.options.get("outputRank", 1) == 1 and not node.input(0).has_layout


def _like(first: Node, product: Node, leaf: Node | None, plan: Plan, values: Values) -> bool:
    """Return whether what is added to a product is a product, too, of its size, with the right operand of the first
    one."""
    if leaf is None or not _is_product(leaf) or shapes.size(leaf.shape or ()) != shapes.size(product.shape or ()):
        return False  # one that is smaller is added several times
    if leaf in plan.zeros or len(plan.users[leaf]) != 1 or leaf in plan.outputs:
        return False
    x = leaf.input(1)
    same = _is_product(first) and x is first.input(1) and _inner(leaf) == _inner(first)
    return same and x.has_layout and not is_sparse(values[x]) and not is_sparse(values[leaf.input(0)])


def _inner(product: Node) -> int:
    return shapes.matrix(product.input(0).shape or (1,))[1]


def _spread(product: Node, leaf: Node | None, values: Values, context: Context) -> Array:
    """Return a node outside of the loop in the form of a product inside: `(T, rows, width)`, or `(width,)`."""
    shape, width = tuple(reversed(product.shape or ())), _rows(product)
    if leaf is None:
        return jnp.zeros(width, context.dtype)
    value, grid = dense(values[leaf], leaf), (context.T, context.S)
    lead = grid if leaf.has_layout else ()
    missing = len(shape) - (value.ndim - len(lead))
    value = value.reshape(*value.shape[: len(lead)], *(1,) * missing, *value.shape[len(lead) :])
    if not leaf.has_layout and shapes.size(shape) == width:
        return jnp.broadcast_to(value, shape).reshape(width)
    return jnp.broadcast_to(value, (*grid, *shape)).reshape(grid[0], -1, width)


def joined_products(
    loop: list[Node], plan: Plan, constants: Container[Node], same: Mapping[Node, Node], needed: Iterable[Node]
) -> tuple[list[JoinedProduct], dict[Node, Node]]:
    """Return the products of a loop whose weights do not change in it.

    Args:
        loop: the nodes of the loop.
        plan: the evaluation it is part of.
        constants: the nodes outside of the loop that carry no minibatch data.
        same: for delay nodes the first one with the same value.
        needed: the nodes whose values are used after the step.

    Returns:
        The products, and the sums in the loop which have the value of one of their operands, because the other one is
        added to a product already.
    """
    members, kept = set(loop), set(needed)
    groups: dict[tuple[Node, int], list[Node]] = {}
    added: dict[Node, list[Node]] = {}
    passed: dict[Node, Node] = {}
    for node in loop:
        if _is_product(node) and node.input(0) in constants:
            groups.setdefault((same.get(node.input(1), node.input(1)), _inner(node)), []).append(node)
            added[node] = _added(node, plan, members, kept, passed)
    return [JoinedProduct(nodes, [added[node] for node in nodes]) for nodes in groups.values()], passed


def _added(product: Node, plan: Plan, members: set[Node], kept: set[Node], passed: dict[Node, Node]) -> list[Node]:
    """Return the terms from outside of the loop that a product is only added to; the sums come into `passed`."""
    nodes: list[Node] = []
    node = product
    while node not in kept and len(plan.users[node]) == 1:
        user = plan.users[node][0]
        if user not in members or user.kind.name != "Plus" or user.shape != product.shape:
            break
        (other_operand,) = [operand for operand in user.connected if operand is not node]
        if other_operand not in members and user not in passed:
            nodes.append(other_operand)
            passed[user] = node
        node = user
    return sorted(nodes, key=lambda leaf: not leaf.has_layout)


def differentiable_loop(values: Loop, run: Loop) -> Callable[..., Any]:
    """Return a loop whose gradient by the weights of products is computed after it.

    Args:
        values: as `run`, called where there is no gradient.
        run: gets the weights of the products; everything else that the result depends on; and what it has no gradient
            of. Gives the result, and for each product its operands `(T, rows, inner)`. The `"sums"` of its second
            argument are those that are added to the products, `(T, rows, width)`.
    """

    def primal(weights: list[Array], value: object, fixed: object) -> Any:
        return values(weights, value, fixed)[0]

    def forward(weights: list[Array], value: object, fixed: object) -> tuple[Array, Residuals]:
        def free(value: object) -> Any:
            return run(weights, value, fixed)

        result, back, operands = jax.vjp(free, value, has_aux=True)
        return result, (back, operands)

    def backward(residuals: Residuals, g: object) -> Gradients:
        back, operands = residuals
        (gradient,) = back(g)
        pairs = zip(operands, gradient["sums"], strict=True)
        return [dot(_matrix(x), _matrix(products), (0, 0)) for x, products in pairs], gradient, None

    return custom_gradient(forward, backward, primal)


def dense(value: Array | Sparse, node: Node) -> Float[Array, "T S ..."]:
    """Return a value with minibatch data, not sparse."""
    return value.dense(node.shape) if is_sparse(value) else value


def _matrix(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])
