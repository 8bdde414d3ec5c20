"""Results of a test of a classification: counts by class, and the samples with the largest loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.compile.evaluate import LENGTHS, compile_network
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.minibatch import Layout
from cntkpy.trainers.evaluation.sample_pictures import cells, picture, picture_input
from cntkpy.trainers.step.context import StepContext

CRITERIA = ("CrossEntropyWithSoftmax", "ClassificationError")
"""Operations that compare a label with scores, the one whose scores have a loss first."""
MAX_CLASSES = 200
"""With more classes, nothing is counted: the counts would be longer than the rest of an event file."""
WORST = 20
"""Samples with the largest loss that are kept."""


def classification(nodes: Sequence[Node]) -> Node | None:
    """Return the node among these whose labels and scores can be counted; None: there is none."""
    for operation in CRITERIA:
        for node in nodes:
            if node.operation == operation and _is_counted(node):
                return node
    return None


def _is_counted(node: Node) -> bool:
    labels, scores = node.input(0), node.input(1)
    sizes = {shapes.size(source.shape or ()) for source in (labels, scores)}
    return labels.has_layout and scores.has_layout and len(sizes) == 1 and 2 <= sizes.pop() <= MAX_CLASSES


class ConfusionCount:
    """Counts while a network is evaluated: a callback of the evaluation.

    The class of a sample is the place of the largest element of its label, what it is taken for that of its scores; the
    first of equal elements counts. A sample whose label has no positive element is left out. The loss is the cross
    entropy of the softmax of the scores, -sum(labels * log softmax(scores)).

    Args:
        network: the network.
        node: see `classification`.
    """

    def __init__(self, network: ValidatedNetwork, node: Node) -> None:
        labels, scores = node.input(0), node.input(1)
        self.output = scores
        self.counts = np.zeros((size := shapes.size(scores.shape or ()), size), np.int64)
        self._worst = np.zeros((0, 5))  # loss, sequence, step, class, taken for
        self._picture = picture_input(network, scores)
        self._pictures: dict[tuple[int, int], dict[str, Any]] = {}
        """By sequence and step."""
        self._has_loss = node.operation == CRITERIA[0]
        self._sequences = 0
        self._in_slot: dict[int, int] = {}
        compiled = compile_network(network, [labels.name, scores.name])

        def values(
            weights: object, state: object, batch: object, key: object, settings: object
        ) -> tuple[Any, dict[str, Any]]:
            results, _ = compiled(weights, state, batch, key, settings)
            y, z = (results[node.name].reshape(*results[node.name].shape[:2], -1) for node in (labels, scores))
            loss = -jnp.sum(y * jax.nn.log_softmax(z), axis=-1)
            classes = jnp.where(jnp.max(y, axis=-1) > 0, jnp.argmax(y, axis=-1), -1)
            lengths = {name: value for name, value in results.items() if name.endswith(LENGTHS)}
            return (classes, jnp.argmax(z, axis=-1), loss), lengths

        self._values = jax.jit(values)

    def __call__(self, context: StepContext) -> None:
        """Count the samples of one minibatch."""
        w = context
        (classes, taken_for, loss), lengths = self._values(w.weights, w.state, w.batch, w.key, w.settings)
        layout = w.stack.layout(0, self.output, lengths)
        step, slot, owner = layout.cells
        sequence = self._numbers(layout)[owner]
        arrays = (loss, classes, taken_for)
        cell_loss, cell_class, cell_taken = (np.asarray(array)[step, slot] for array in arrays)
        known = cell_class >= 0
        np.add.at(self.counts, (cell_class[known], cell_taken[known]), 1)
        if self._has_loss:
            place = step - layout.sequences[owner, 2]
            rows = np.column_stack([cell_loss, sequence, place, cell_class, cell_taken, step, slot]).astype(np.float64)
            added = self._keep_worst(rows[known & np.isfinite(cell_loss)])
            if self._picture is not None and len(added):
                self._keep_pictures(w.batch.inputs[self._picture.name], added, self._picture.shape or ())

    def _numbers(self, layout: Layout) -> NDArray[np.int64]:
        """Return the number of each sequence, in the order of the data; the rest of one that was cut has its number."""
        numbers: list[int] = []
        for _, slot, begin, _ in layout.sequences.tolist():
            if begin >= 0:
                self._in_slot[slot] = self._sequences
                self._sequences += 1
            numbers.append(self._in_slot.get(slot, 0))
        return np.asarray(numbers, np.int64)

    def _keep_worst(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Keep the worst of what is kept and of these rows, which have the cell behind; returns those that are kept."""
        if len(rows) > WORST:
            rows = rows[np.argpartition(-rows[:, 0], WORST - 1)[:WORST]]
        every = np.concatenate([self._worst, rows[:, :5]])
        order = np.lexsort((every[:, 2], every[:, 1], -every[:, 0]))[:WORST]
        previous, self._worst = len(self._worst), every[order]
        return rows[order[order >= previous] - previous]

    def _keep_pictures(self, values: object, rows: NDArray[np.float64], shape: tuple[int, ...]) -> None:
        """Keep the pictures of these rows, and drop those of samples that are not among the worst any more."""
        samples = cells(values, [(int(row[5]), int(row[6])) for row in rows], WORST)
        for row, sample in zip(rows, samples, strict=True):
            self._pictures[int(row[1]), int(row[2])] = picture(sample, shape)
        kept = {(int(row[1]), int(row[2])) for row in self._worst}
        self._pictures = {key: shown for key, shown in self._pictures.items() if key in kept}

    def values(self) -> dict[str, Any]:
        """Return the event of a test: the counts by class and by the class taken for it, and the worst samples."""
        names = ("loss", "sequence", "step", "label", "takenFor")
        worst: list[dict[str, Any]] = [
            {name: value if name == "loss" else int(value) for name, value in zip(names, row, strict=True)}
            for row in self._worst.tolist()
        ]
        for cell in worst:
            if picture := self._pictures.get((cell["sequence"], cell["step"])):
                cell["picture"] = picture
        return {"output": self.output.name, "counts": self.counts.tolist(), "worst": worst}
