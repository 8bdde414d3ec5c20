"""Values of a network as text: the `format` section of `write` (docs/specification/actions-and-training.md 4.2).

A file holds sequence after sequence; a sequence holds its samples, one a line (or one line per element of a sample).
The separators are fragments in which escapes and a few placeholders are replaced.
"""

import itertools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.files import LIST_LIMIT, read_input
from cntkpy.trainers.parameters.sgd import FormatParameters

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Node
    from cntkpy.readers.minibatch import Layout

log = logging.getLogger("cntkpy.trainers")

NUMBERS_TOGETHER = 1 << 16
"""Numbers that become text at once."""


@dataclass(frozen=True)
class Format:
    """Values as text; the defaults are those of `write` without a `format` section.

    Attributes:
        labels: the content of the label file. The others: see `FormatParameters`.
    """

    kind: str = "real"
    labels: tuple[str, ...] = ()
    transpose: bool = True
    prologue: str = ""
    epilogue: str = ""
    sequence_prologue: str = ""
    sequence_epilogue: str = "\\n"
    sequence_separator: str = ""
    element_separator: str = "\\s"
    sample_separator: str = "\\n"
    precision: str = ""

    @classmethod
    def read(cls, section: ConfigParameters | None) -> "Format":
        """Return the format that a `format` section describes; the default one if there is none."""
        if section is None:
            return cls()
        p = FormatParameters(section)
        labels = () if p.kind == "real" or not p.label_file else read_labels(Path(p.label_file), p)
        return cls(
            p.kind,
            labels,
            p.transpose,
            p.prologue,
            p.epilogue,
            p.sequence_prologue,
            p.sequence_epilogue,
            p.sequence_separator,
            p.element_separator,
            p.sample_separator,
            p.precision,
        )


def read_labels(path: Path, p: FormatParameters) -> tuple[str, ...]:
    """Return the labels of a mapping file, one a line, blanks around them removed; bytes that are no UTF-8 stay as they
    are.

    Raises:
        ConfigError: if the file is missing or has an empty line.
    """
    try:
        content = read_input(path, LIST_LIMIT).removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise p.error("labelMappingFile", f"cannot read the label file {path}: {error.strerror}") from None
    lines = content.removesuffix(b"\n").split(b"\n")  # a label may hold what else Unicode calls an end of line
    labels = tuple(line.strip(b" \t\r").decode("utf-8", "surrogateescape") for line in lines)
    if "" in labels:
        raise p.error("labelMappingFile", f"{path}:{labels.index('') + 1}: empty line in the label file")
    return labels


def node_sequences(node: "Node", values: NDArray[Any], layout: "Layout") -> list[NDArray[Any]]:
    """Return the sequences of a minibatch as arrays (steps, elements), elements in CNTK's flat order.

    Args:
        node: the node. One that carries no minibatch data is one sequence whose steps are the columns of its matrix.
        values: its values for one minibatch, with padding, (steps, slots, *sample).
        layout: where the sequences of the minibatch lie.
    """
    if not node.has_layout:
        rows = (node.shape or (1,))[0]
        return [values.reshape(-1, rows)]
    flat = values.reshape(*values.shape[:2], -1)
    if layout.is_single:  # most often; by the list below NumPy takes four times as long
        return list(flat[0, : layout.S, None])
    return [flat[max(begin, 0) : min(end, layout.T), slot] for _, slot, begin, end in layout.sequences.tolist()]


class NodeWriter:
    """Turns the values of one node into text, minibatch after minibatch.

    Args:
        name: the node, for the placeholder `%s`.
        shape: shape of a sample as CNTK writes it, e.g. `(10,)` or `(28, 28, 3)`.
        layout: the `Format`.
    """

    def __init__(self, name: str, shape: tuple[int, ...], layout: Format):
        self.name, self.shape, self.format = name, shape, layout
        self._number = f"%{layout.precision}f"
        self._index = f"%{layout.precision}d"
        self._word = f"%{layout.precision}s"
        self._minibatch = 0
        self._warnings = 0
        self._known: dict[tuple[str, bool], str] = {}

    def minibatch(self, sequences: Sequence[NDArray[np.floating]]) -> str:
        """Return the text of a minibatch: arrays of shape `(steps, elements)`, elements in CNTK's flat order."""
        pieces: list[str] = []
        f = self.format
        lines = self._lines(sequences) if f.kind == "real" and f.transpose else None
        for index, values in enumerate(sequences):
            steps = len(values)
            if index:
                pieces.append(self._fragment(f.sequence_separator))
            pieces.append(self._fragment(f.sequence_prologue, index, steps))
            if lines is None:
                pieces.append(self._sequence(np.asarray(values) + 0.0, index))
            else:
                pieces.append(self._fragment(f.sample_separator, index, steps).join(itertools.islice(lines, steps)))
            pieces.append(self._fragment(f.sequence_epilogue))
        self._minibatch += 1
        return "".join(pieces)

    def _lines(self, sequences: Sequence[NDArray[np.floating]]) -> Iterator[str]:
        """Yield a line for each sample of all sequences, which are most often so short that each by itself takes
        longer.
        """
        table = np.concatenate(sequences)
        number = self._row(table.shape[1])
        rows = max(1, NUMBERS_TOGETHER // max(1, table.shape[1]))
        for begin in range(0, len(table), rows):
            yield from [number % tuple(row) for row in (table[begin : begin + rows] + 0.0).tolist()]

    def _row(self, elements: int) -> str:
        """Return the format of a line of this many numbers."""
        return self._fragment(self.format.element_separator).replace("%", "%%").join([self._number] * elements)

    def _sequence(self, values: NDArray[np.floating], index: int) -> str:
        f, steps = self.format, len(values)
        between_lines = self._fragment(f.sample_separator, index, steps)
        between_elements = self._fragment(f.element_separator)
        if f.kind == "sparse":
            return (between_lines if f.transpose else between_elements).join(self._nonzeros(values))
        if f.kind == "category":
            rows = [[self._category(row) for row in values]]
            if f.transpose:
                rows = [[text] for text in rows[0]]
            return between_lines.join(between_elements.join(row) for row in rows)
        number = self._row(steps)
        lines = [number % tuple(row) for row in values.T.tolist()]
        if len(self.shape) > 1:
            lines = [f"[{self._subscript(i)}]\t{line}" for i, line in enumerate(lines)]
        return between_lines.join(lines)

    def _category(self, row: NDArray[np.floating]) -> str:
        best = len(row) - 1 - int(np.argmax(row[::-1]))
        labels = self.format.labels
        if not labels:
            return self._index % best
        if len(labels) in (len(row), self.shape[0] if self.shape else 1):
            return self._word % labels[best % len(labels)]
        if self._warnings < 5:
            self._warnings += 1
            log.warning(
                "write: the label file has %d labels, but node '%s' has %d elements; writing the index instead",
                len(labels),
                self.name,
                len(row),
            )
        return self._index % best

    def _nonzeros(self, values: NDArray[np.floating]) -> Iterator[str]:
        steps, elements = values.shape
        order = (
            itertools.product(range(elements), range(steps))
            if self.format.transpose
            else ((i, t) for t in range(steps) for i in range(elements))
        )
        for i, t in order:
            value = values[t, i]
            if value:
                number = "" if value == 1 else self._number % value
                yield f"{number}[{self._subscript(i)}{f';{t}' if steps > 1 else ''}]"

    def _subscript(self, flat: int) -> str:
        """Return the tensor indices of a flat element, first axis fastest; labels beside an index where they fit."""
        indices = np.unravel_index(flat, self.shape or (1,), order="F")
        words: list[str] = []
        for index, size in zip(indices, self.shape or (1,), strict=True):
            label = self.format.labels[index] if len(self.format.labels) == size else None
            words.append(f"{index}={label}" if label else str(index))
        return ",".join(words)

    def _fragment(self, text: str, sequence: int | None = None, steps: int = 0) -> str:
        """Escapes and placeholders of one fragment; `%x` and `%d` only where a sequence is at hand."""
        key = text, sequence is None
        known = self._known.get(key)
        if known is not None:
            return known
        for escape, character in (("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t"), ("\\s", " ")):
            text = text.replace(escape, character)
        text = template = text.replace("%s", self.name)
        text = text.replace("%n", str(self._minibatch))
        if sequence is not None:
            dims = " ".join(str(size) for size in self.shape)
            text = text.replace("%x", f"{dims} {steps}").replace("%d", str(sequence))
        if text == template:
            self._known[key] = text
        return text
