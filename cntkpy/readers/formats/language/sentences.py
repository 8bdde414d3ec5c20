"""SequenceReader: sentences of equal length side by side, each word labelled with the one that follows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.parameters import check_precision
from cntkpy.readers.reader import Reader
from cntkpy.readers.streams import DTYPES, StreamInformation

from . import codes as k
from .corpus import Block, LineCorpus
from .kernels import layers, shuffles
from .options import slots_of
from .parameters import (
    SequenceFeatureParameters,
    SequenceLabelParameters,
    SequenceReaderParameters,
    feature_section,
    label_sections,
    label_size,
    name_of,
)
from .pieces import Pieces
from .source import Groups, Position, SentenceFormat, SentenceSource, stable_order
from .vocabulary import Vocabulary, WordClasses, load_mapping, load_word_classes, show, warn_of_end

log = logging.getLogger("cntkpy.readers")
NOISE_SEED = 1234
ZERO = 1e-6
"""Label of word 0 in mode=softmax, as in CNTK."""


def load_vocabulary(
    p: SequenceLabelParameters, reader: SequenceReaderParameters, classes: WordClasses | None
) -> tuple[Vocabulary, int]:
    """Return the vocabulary of a section of labels and its dimension: of its mapping file, else of the word classes."""
    unknown, dim = str(reader.unk).encode(), p.label_dim
    mapped = bool(p.mapping) and exists(str(p.mapping))
    if classes is not None and dim and (dim > len(classes.words) or (dim < len(classes.words) and not mapped)):
        raise p.error(
            "labelDim",
            f"labelDim is {dim}, but the word class file {reader.word_classes} has {len(classes.words)} words",
            f"write labelDim={len(classes.words)}, or make a word class file of {dim} words",
        )
    if mapped:
        vocabulary = Vocabulary(load_mapping(p), unknown)
    elif classes is None:
        raise p.error(
            "labelMappingFile",
            f"there is neither a label mapping file{f' {p.mapping}' if p.mapping else ''} nor a word class file",
            "give wordclass in the reader's section; action=writeWordAndClass makes both files",
            "MissingParameter",
        )
    else:
        vocabulary = Vocabulary(classes.words, unknown)
    return vocabulary, max(dim, len(vocabulary))


class LabelMaker:
    """Labels from numbers of words: class (number, class, first and last + 1 word of the class), softmax or nce."""

    def __init__(self, mode: str, dtype: np.dtype, classes: WordClasses | None, noise: int):
        self.mode, self.dtype, self._noise = mode, dtype, noise
        if mode == "class":
            assert classes is not None
            numbers = np.arange(len(classes.words))[:, None]
            rows = np.hstack([numbers, classes.bounds()]).astype(dtype)
            self._table = np.vstack([rows, np.zeros((1, rows.shape[1]), dtype)])
        elif mode == "nce":
            assert classes is not None
            self._chance = classes.counts / classes.counts.sum()

    @property
    def dim(self) -> int:
        """Values of a label."""
        return label_size(self.mode, self._noise)

    def __call__(self, words: np.ndarray, pieces: Pieces) -> np.ndarray:
        """Labels (rows, dim) of words int32[rows], zeros in gaps (word GAP)."""
        if self.mode == "class":
            return self._table.take(words, 0)  # of gaps the last line; an index takes ten times as long
        if self.mode == "softmax":
            return np.where(words == 0, ZERO, np.maximum(words, 0)).astype(self.dtype)[:, None]
        out = np.zeros((len(words), self.dim), self.dtype)
        for number, (a, b) in enumerate(pairwise(pieces.rows), 1):
            cells = a + np.flatnonzero(words[a:b] >= 0)
            out[cells] = self._with_noise(words[cells], [NOISE_SEED, pieces.epoch, pieces.calls + number])
        return out

    def _with_noise(self, words: np.ndarray, seed: list[int]) -> np.ndarray:
        """Labels (n, dim) of mode=nce: words and others, each with the logarithm of its chance."""
        rng = np.random.default_rng(seed)
        noise = rng.choice(len(self._chance), (len(words), self._noise), p=self._chance)
        with np.errstate(divide="ignore"):
            of_word, of_noise = np.log(self._chance[words]), -np.log(self._chance[noise])
        pairs = np.stack([noise, of_noise], axis=-1).reshape(len(words), 2 * self._noise)
        return np.concatenate([words[:, None], of_word[:, None], pairs], axis=-1)


class SequenceFormat(SentenceFormat):
    """Groups of sentences of equal length; with `slots`, a sentence longer than a minibatch continues in the next."""

    def __init__(
        self,
        corpus: LineCorpus,
        features: StreamInformation,
        labels: tuple[str, LabelMaker] | None,
        slots: int,
    ):
        self._features, self._labels, self._slots = features, labels, slots
        self.unlabelled = int(bool(labels))
        streams = [features]
        if labels:
            streams.append(StreamInformation(labels[0], (labels[1].dim,), False, features.dtype))
        super().__init__(corpus, streams)

    def permutation(self, count: int, seed: int) -> np.ndarray:
        """By the Mersenne twister."""
        functions = shuffles(count)
        return functions.shuffled(count, functions.mersenne(seed))

    def seed(self, position: Position) -> int:
        """1 for the first block of the first epoch; one more for every epoch and for every block."""
        return position.epoch + 1 + position.number

    def samples(self) -> int:
        """Words that have a label; reads the whole corpus, once."""
        tokens, _, sentences = self.corpus.measures
        return tokens - sentences if self._labels else tokens

    def prepare(self, minibatch_size: int) -> None:
        """Find out whether sentences have to be cut."""
        self.truncates = self._slots > 0 and self.corpus.measures.longest - bool(self._labels) > minibatch_size

    def group(self, lengths: np.ndarray, minibatch_size: int) -> np.ndarray:
        """Return the first sentence not yet taken, and those as long as it is that come next, as many as there is room
        for.
        """
        most = (
            np.full(len(lengths), min(self._slots, len(lengths)))
            if self._slots
            else np.maximum((minibatch_size - 1) // lengths, 1)
        )
        by_length = stable_order(lengths)
        new = np.append(True, np.diff(lengths[by_length]) != 0)
        starts = np.flatnonzero(new)
        rank = np.arange(len(lengths)) - np.repeat(starts, np.diff(np.append(starts, len(lengths))))
        leads = rank % most[by_length] == 0
        first = by_length[leads]
        out = np.empty(len(lengths), np.int64)
        out[by_length] = first[np.cumsum(leads) - 1]
        return out

    def plan(self, block: Block, groups: Groups, position: Position, most: int, cells: int) -> np.ndarray:
        """Return the next steps of these sentences, all of them if they need not be cut."""
        return layers(10 * most).plan_pieces(
            block.bounds,
            groups.members,
            groups.starts,
            position.group,
            position.step,
            self.unlabelled,
            position.minibatch_size if self._slots else 2**62,
            self._slots if self.truncates else 0,
            most,
            cells,
        )

    def counts(self, table: np.ndarray) -> np.ndarray:
        """Words."""
        return table[:-1, k.SAMPLES]

    def pack(self, pieces: Pieces) -> dict[str, Iterator[Any]]:
        """Return the words, and the label of each."""
        block = pieces.block
        words, row_bounds, previous, labels = layers(int(pieces.table[-1, k.ROW])).lay_words(
            pieces.table, pieces.which, block.bounds, block.inputs, block.outputs, self._labels is not None
        )
        streams = {self._features.name: pieces.split_sparse(words, row_bounds, previous, self._features)}
        if self._labels:
            name, make = self._labels
            streams[name] = pieces.split_rows(make(labels, pieces))
        return streams


def create_sequence_reader(section: ConfigParameters, precision: str) -> Reader:
    """SequenceReader, which CNTK also calls LMSequenceReader."""
    p = SequenceReaderParameters(section)
    dtype = np.dtype(DTYPES[check_precision(section, precision)])
    features = SequenceFeatureParameters(feature_section(section))
    name = name_of(features.config)
    inside, outside = label_sections(section)
    words, labels = SequenceLabelParameters(section.section(inside)), SequenceLabelParameters(section.section(outside))
    if words.label_type != "category":
        raise words.error("labelType", "the words of a corpus are categories", "write labelType=category")
    classes = load_word_classes(p) if p.word_classes else None
    vocabulary, dim = load_vocabulary(words, p, classes)
    kind, mode = labels.label_type, features.mode
    outputs = load_vocabulary(labels, p, classes)[0] if kind == "category" else vocabulary
    if classes is None:
        if kind != "none" and mode != "softmax":
            raise p.error(
                "wordclass",
                f"mode={mode} needs a word class file",
                "action=writeWordAndClass makes one",
                "MissingParameter",
            )
    elif len(classes.words) < len(outputs):
        raise p.error(
            "wordclass",
            f"the word class file has {len(classes.words)} words, but the vocabulary {len(outputs)}",
            "every word needs a class",
        )
    if vocabulary.unknown < 0 and p.trace_level > 0:
        log.warning("The word for unknown words, '%s', is not in the list of words.", p.unk)
    if kind == "nextWord":
        warn_of_end(str(words.end), inside, vocabulary)
    corpus_path = str(p.file)
    if not exists(corpus_path):
        raise p.error("file", f"the corpus {corpus_path} does not exist", kind="CannotRead")
    same = outputs is vocabulary or outputs.words == vocabulary.words
    corpus = LineCorpus(
        corpus_path,
        vocabulary,
        vocabulary if same else outputs,
        str(words.end).encode() if kind == "nextWord" else b"",
        p.block,
    )
    maker = None if kind == "none" else (outside, LabelMaker(mode, dtype, classes, features.noise))
    words_of = SequenceFormat(corpus, StreamInformation(name, (dim,), True, dtype), maker, slots_of(p))
    source = SentenceSource(words_of, shuffles=_shuffles(p), prefetch=p.prefetch)
    source.class_names = {name: vocabulary.names, inside: vocabulary.names}
    if kind != "none":
        source.class_names[outside] = outputs.names
    if p.trace_level > 0:
        log.info("SequenceReader: %s, %d words in the list, first '%s'", corpus_path, dim, show(vocabulary.words[0]))
    return Reader(source)


def _shuffles(p: SequenceReaderParameters) -> bool:
    """In training CNTK shuffles always, and so results depend on it; `shuffle` has the last word."""
    if p.shuffle is not None:
        return p.shuffle
    if p.randomize:
        return True
    return p.trains()
