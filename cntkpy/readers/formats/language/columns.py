"""LUSequenceReader: sentences of words with a tag each, words together with their neighbours."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.errors import DataError
from cntkpy.readers.parameters import check_precision
from cntkpy.readers.reader import Reader
from cntkpy.readers.streams import DTYPES, StreamInformation

from . import codes as k
from .corpus import Block, ColumnCorpus, Ends
from .kernels import layers, shuffles
from .options import slots_of
from .parameters import (
    LULabelParameters,
    LUSequenceReaderParameters,
    LUSideReaderParameters,
    feature_section,
    label_sections,
    name_of,
)
from .pieces import Pieces
from .source import Groups, Position, SentenceFormat, SentenceSource
from .vocabulary import Vocabulary, WordClasses, load_tokens, load_word_map, renumber, show, warn_of_end

log = logging.getLogger("cntkpy.readers")
_NONE = np.zeros(0, np.int64)


class LUSequenceFormat(SentenceFormat):
    """Groups of neighbouring sentences, padded to the longest.

    offsets: the words given at each step. table: of labels of mode=class, zeros in the last line, else None.
    """

    kind = "LUSequenceReader"
    seeds_by_calls = True

    def __init__(
        self,
        corpus: ColumnCorpus,
        features: StreamInformation,
        labels: StreamInformation,
        offsets: list[int],
        table: np.ndarray | None,
        *,
        slots: int,
        equal: bool,
    ):
        self._features, self._labels, self._table = features, labels, table
        self._offsets, self._slots, self._equal = np.array(offsets), max(slots, 1), equal
        self._columns = corpus
        super().__init__(corpus, [features, labels])

    def permutation(self, count: int, seed: int) -> np.ndarray:
        """By the minimal standard generator."""
        functions = shuffles(count)
        return functions.shuffled(count, functions.minimal_standard(seed))

    def seed(self, position: Position) -> int:
        """Minibatches asked for so far, in all epochs."""
        return position.calls

    def group(self, lengths: np.ndarray, minibatch_size: int) -> np.ndarray:
        """Return the next sentences, of equal length if asked for."""
        return shuffles(len(lengths)).group_neighbours(lengths, min(self._slots, len(lengths)), self._equal)

    def plan(self, block: Block, groups: Groups, position: Position, most: int, cells: int) -> np.ndarray:
        """Whole groups."""
        plan = layers(10 * most).plan_pieces
        table = plan(
            block.bounds, groups.members, groups.starts, position.group, position.step, 0, 2**62, 0, most, cells
        )
        long = np.flatnonzero(table[:-1, k.STEPS] > position.minibatch_size)
        if len(long) and long[0] == 0:
            members = groups.members[groups.starts[position.group] : groups.starts[position.group + 1]]
            steps = block.lengths[members]
            line = self._columns.first_line(block, int(members[steps.argmax()]))
            raise _too_long(self.corpus.path, line, int(steps.max()), position.minibatch_size)
        return table[: long[0] + 1] if len(long) else table

    def counts(self, table: np.ndarray) -> np.ndarray:
        """Sentences."""
        return table[:-1, k.MEMBERS]

    def pack(self, pieces: Pieces) -> dict[str, Iterator[Any]]:
        """Return the bags of words of every cell, and its label."""
        block, table, features = pieces.block, pieces.table, self._features
        lay = layers(int(table[-1, k.ROW]))
        columns, row_bounds, previous, labels = lay.lay_bags(
            table,
            pieces.which,
            block.bounds,
            block.inputs,
            block.outputs,
            _NONE if block.words is None else block.words,
            self._offsets,
            features.dim // len(self._offsets),
        )
        streams = {features.name: pieces.split_sparse(columns, row_bounds, previous, features)}
        if self._table is None:
            tags: tuple[np.ndarray, np.ndarray, np.ndarray] = lay.single_entries(table, labels)
            streams[self._labels.name] = pieces.split_sparse(*tags, self._labels)
        else:
            streams[self._labels.name] = pieces.split_rows(self._table.take(labels, 0))  # of gaps the last line
        return streams


def _too_long(path: str, line: int, length: int, size: int) -> DataError:
    return DataError(
        f"{path}:{line}: the sentence that begins here has {length} words, more than the minibatch size {size}.",
        path=path,
        line=line,
        hint=f"write minibatchSize={length} or more; sentences are not cut",
    )


def _numbers(
    p: LULabelParameters, reader: LUSequenceReaderParameters, word_map: dict[bytes, tuple[bytes, int]] | None
) -> tuple[Vocabulary, WordClasses, np.ndarray]:
    """Return the list of words of a section, its classes, and the numbers that its words are given out with."""
    classes = load_tokens(p, p.mode == "class")
    vocabulary = Vocabulary(classes.words, str(reader.unk).encode())
    if not p.use_map:
        return vocabulary, classes, np.arange(len(vocabulary), dtype=np.int32)
    if word_map is None:
        raise p.error("useWordMap", "there is no word map", "give wordmap in the reader's section", "MissingParameter")
    return vocabulary, classes, renumber(reader, vocabulary, word_map)


def _given_names(words: Vocabulary, array: np.ndarray) -> dict[int, str]:
    """Words by the numbers that they are given out with; the first one, where several share a number."""
    names: dict[int, str] = {}
    for number, word in zip(array.tolist(), words.words, strict=True):
        names.setdefault(number, show(word))
    return dict(sorted(names.items()))


def create_source(p: LUSequenceReaderParameters, precision: str) -> SentenceSource:
    """Return one stream of words and one of labels."""
    section = p.config
    dtype = np.dtype(DTYPES[check_precision(section, precision)])
    p.check_together()
    name = name_of(feature_section(section))
    inside, outside = label_sections(section, (str(p.input_label), str(p.output_label)))
    words, labels = LULabelParameters(section.section(inside)), LULabelParameters(section.section(outside))
    for item in (words, labels):
        _ = item.label_type
    word_map = load_word_map(p) if p.word_map else None
    vocabulary, _, given_words = _numbers(words, p, word_map)
    tags, classes, given_tags = _numbers(labels, p, word_map)
    offsets = p.context
    path = str(p.file)
    if not exists(path):
        raise p.error("file", f"the corpus {path} does not exist", kind="CannotRead")
    warn_of_end(str(words.end), inside, vocabulary)
    warn_of_end(str(labels.end), outside, tags)
    ends = Ends(str(words.end).encode(), str(labels.end).encode())
    corpus = ColumnCorpus(path, vocabulary, tags, ends, (given_words, given_tags))
    table = None
    if labels.mode == "class":
        rows = np.hstack([np.arange(len(tags))[:, None], classes.bounds()]).astype(dtype)
        table = np.vstack([rows, np.zeros((1, rows.shape[1]), dtype)])
    format = LUSequenceFormat(
        corpus,
        StreamInformation(name, (len(vocabulary) * len(offsets),), True, dtype),
        StreamInformation(outside, (4 if table is not None else len(tags),), table is None, dtype),
        offsets,
        table,
        slots=slots_of(p),
        equal=p.equal_length,
    )
    source = SentenceSource(format, shuffles=p.randomize, repeats=p.multi_pass, prefetch=p.prefetch)
    source.class_names = {
        inside: lambda: _given_names(vocabulary, given_words),
        outside: lambda: _given_names(tags, given_tags),
    }
    if len(offsets) == 1:
        source.class_names[name] = source.class_names[inside]
    block = corpus.block()
    if block is not None and ends.label and (block.lengths == 1).any():
        log.warning(
            "%s: a line with the label '%s' ends a sentence (endSequence of '%s'), so some sentences have one word.",
            path,
            show(ends.label),
            outside,
        )
    return source


def create_lu_sequence_reader(section: ConfigParameters, precision: str) -> Reader:
    """LUSequenceReader; with ioNodeNames, several of them side by side."""
    p = LUSequenceReaderParameters(section)
    names = [str(name) for name in p.nodes]
    if not names:
        return Reader(create_source(p, precision))
    from .side_by_side import SideBySide

    p.check_together()
    parts = [LUSideReaderParameters(section.section(name)) for name in names]
    return Reader(SideBySide([create_source(part, precision) for part in parts], names))
