"""The values of the nodes of a group at some steps.

Of one slot, vectors are rows of a matrix where operations allow it: XLA's loops for CPUs take longer for arrays that
have an axis of one slot between steps and elements. The softmax of a vector that only multiplies one matrix is never
kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cntkpy.networks.arrays.images import plain
from cntkpy.networks.arrays.lazy import Array
from cntkpy.networks.arrays.products import by_slot, dot
from cntkpy.networks.arrays.sparse import is_sparse
from cntkpy.networks.arrays.weighted_means import weighted_means
from cntkpy.networks.compile.apply import apply_to_images
from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.compile.step_groups import PRODUCTS
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.call import Call, Context


class GroupSteps:
    """Computes nodes of a group at some steps.

    Args:
        plan: the evaluation that they are part of.
        nodes: in order of evaluation.
        values: (T, S, ...) by node before them, at these steps.
        same: by node that is the same at every step, the value (1, S, ...).
        context: of these steps.
    """

    def __init__(
        self,
        plan: Plan,
        nodes: Sequence[Node],
        values: Mapping[Node, Array],
        same: Mapping[Node, Array],
        context: Context,
    ) -> None:
        self._plan, self._values, self._same, self._context = plan, dict(values), same, context
        self._rows: dict[Node, Array] = {}
        """By node whose value is a vector, with one slot: (T, elements)."""
        means = [node for node in nodes if self._is_mean(node, nodes)]
        weights = {node.input(1) for node in means}
        for node in nodes:
            if node in means:
                self._values[node] = plan.numbers.value(node, self._mean(node))
            elif node not in weights:
                self._compute(node)

    def value(self, node: Node) -> Array:
        """Return the value (T, S, ...) of a node."""
        if node not in self._values:
            self._values[node] = self._rows[node].reshape(-1, 1, *reversed(node.shape or ()))
        return self._values[node]

    def _compute(self, node: Node) -> None:
        rows = self._in_rows(node)
        if rows is not None:
            self._rows[node] = self._plan.numbers.value(node, rows)
            return
        operands = [self.value(i) for i in node.connected]
        if self._takes_matrix(node):
            operands[0] = self._same[node.input(0)]
        self._values[node] = plain(apply_to_images(node, operands, self._context, self._plan.order[node]))

    def _takes_matrix(self, node: Node) -> bool:
        """Return whether a node is a product with a matrix that is the same at every step."""
        same = self._same
        return node.operation in PRODUCTS and node.input(0) in same and node.input(1) not in same

    def _in_rows(self, node: Node) -> Array | None:
        """Return the rows of a node, if it computes them: of a product with one matrix, or elementwise of such rows."""
        if self._context.S != 1:
            return None
        if self._takes_matrix(node):
            return self._product(node)
        known = any(i in self._rows for i in node.connected)
        if not known or not node.kind.pointwise or node.kind.gaps is not None:
            return None
        operands = [self._row(i) for i in node.connected]
        if any(operand is None for operand in operands):
            return None
        call = Call(node, self._context, self._plan.order[node])
        assert node.kind.forward is not None
        return node.kind.forward(call, *self._plan.numbers.operands(node, operands))

    def _product(self, node: Node) -> Array | None:
        """Return the rows of a product of one matrix with a vector at each step."""
        turned, shape = node.operation == "TransposeTimes", node.input(0).shape or ()
        rank = 1 if turned else int(node.options.get("outputRank", 1))
        first, second = shapes.size(shape[:rank]), shapes.size(shape[rank:])
        row = self._row(node.input(1))
        if row is None or row.shape[1] != (first if turned else second):
            return None
        matrix = self._same[node.input(0)].reshape(second, first)
        matrix, row = self._plan.numbers.operands(node, [matrix, row])
        return dot(row, matrix, (-1, -1) if turned else (-1, 0))

    def _row(self, node: Node) -> Array | None:
        """Return the value (T, elements) of a node, (1, elements) if it is the same at every step; None: it is no
        vector.
        """
        if node in self._rows:
            return self._rows[node]
        value = self._same[node] if node in self._same else self._values[node]
        if is_sparse(value) or len(shapes.trimmed(node.shape or ())) > 1:
            return None
        return value.reshape(len(value) if node.has_layout else 1, -1)

    def _is_mean(self, node: Node, nodes: Sequence[Node]) -> bool:
        """Return whether a node is one matrix times the softmax of a vector, which nothing else needs."""
        if node.operation != "Times" or not self._takes_matrix(node):
            return False
        matrix, softmax = node.connected
        if softmax.operation != "Softmax" or softmax not in nodes or softmax in self._plan.outputs:
            return False
        count = shapes.size((matrix.shape or ())[int(node.options.get("outputRank", 1)) :])
        return self._plan.users[softmax] == [node] and shapes.size(softmax.shape or ()) == count

    def _mean(self, node: Node) -> Array:
        """Return the value (T, S, ...) of such a node."""
        softmax, matrix = node.input(1), self._same[node.input(0)]
        scores = self._rows.get(softmax.input(0))
        if scores is None:
            logits = self.value(softmax.input(0))
            scores = by_slot(logits.reshape(*logits.shape[:2], -1))
        scores, *_ = self._plan.numbers.operands(softmax, [scores.reshape(matrix.shape[1], -1, scores.shape[-1])])
        rows = self._plan.numbers.factor(matrix.reshape(matrix.shape[1], scores.shape[-1], -1))
        logits = by_slot(weighted_means(scores, rows))
        return logits.reshape(*logits.shape[:2], *reversed(node.shape or ()))
