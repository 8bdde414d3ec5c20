"""Corpora: sentences of words for language models (SequenceReader), columns of words and tags (LUSequenceReader).

Words become one-hot vectors, by their numbers in a list of words; words not listed are `<unk>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.readers.common.packed import open_data
from cntkpy.readers.data_api.factories import to_section
from cntkpy.readers.formats.language.corpus import Block, Corpus
from cntkpy.readers.formats.language.source import sparse_rows
from cntkpy.readers.streams import DTYPES

from .batches import Batch, Part, Stream
from .sources import Input


def from_lm(paths: Sequence[str], streams: Sequence[Stream], precision: str = "float") -> Input:
    """Sentences, one a line. Streams: `words`, each word, and `next`, the one that follows.

    paths: the corpus, and the words: one a line, or a word class file.
    """
    path, words = _named(paths, 2, "a corpus and its list of words: corpus.txt words.txt")
    classes = _has_classes(words)
    labels: dict[str, Any] = {"labelMappingFile": "" if classes else words}
    config = {
        "readerType": "SequenceReader",
        "file": path,
        "mode": "softmax",
        "features": {"dim": 0},
        "labelIn": {"labelType": "category"} | labels,
        "labels": {"labelType": "nextWord"} | labels,
    }
    corpus = _corpus(config | ({"wordclass": words} if classes else {}), precision)
    dtype, dim = np.dtype(DTYPES[precision]), len(corpus.words)

    def batches() -> Iterator[Batch]:
        for block in corpus.blocks():
            last = np.zeros(len(block.inputs), bool)
            last[block.bounds[1:] - 1] = True
            inside, after = ~last, np.roll(last, 1)
            after[0] = True
            parts = {
                "words": Part(_one_hot(block.inputs[inside], dim, dtype), block.lengths - 1),
                "next": Part(_one_hot(block.outputs[~after], dim, dtype), block.lengths - 1),
            }
            yield Batch(_keys(block), parts)

    samples = sum(len(block.inputs) - len(block.lengths) for block in corpus.blocks())
    result = [Stream("words", dim, "class"), Stream("next", dim, "class")]
    names = corpus.words.names()
    return Input(result, batches(), samples, {"words": names, "next": names}, precision)


def from_lu(paths: Sequence[str], streams: Sequence[Stream], precision: str = "float") -> Input:
    """Lines `word ... tag`, an empty line between sentences. Streams: `words`, the words of a line, and `tags`.

    paths: the corpus, the list of words, the list of tags.
    """
    path, *lists = _named(paths, 3, "a corpus, its list of words and its list of tags: corpus.txt words.txt tags.txt")
    config = {
        "readerType": "LUSequenceReader",
        "file": path,
        "features": {"dim": 0},
        "labelIn": {"labelType": "category", "token": lists[0]},
        "labels": {"labelType": "category", "token": lists[1]},
    }
    corpus = _corpus(config, precision)
    words, tags, dtype = corpus.words, corpus.labels, np.dtype(DTYPES[precision])

    def batches() -> Iterator[Batch]:
        for block in corpus.blocks():
            assert block.words is not None
            bags = sparse_rows(block.inputs, np.diff(block.words), len(words), dtype)
            parts = {
                "words": Part(bags, block.lengths),
                "tags": Part(_one_hot(block.outputs, len(tags), dtype), block.lengths),
            }
            yield Batch(_keys(block), parts)

    result = [Stream("words", len(words), "sparse"), Stream("tags", len(tags), "class")]
    samples = sum(len(block.outputs) for block in corpus.blocks())
    return Input(result, batches(), samples, {"tags": tags.names()}, precision)


def _corpus(config: dict[str, Any], precision: str) -> Corpus:
    """Return the corpus of the reader that a section describes."""
    from cntkpy.readers.registry import create_reader

    source: Any = create_reader(to_section(config), precision).source
    return source.corpus


def _named(paths: Sequence[str], count: int, kind: str) -> Sequence[str]:
    if len(paths) != count:
        raise ConfigError(
            "MissingFile", f"{count} files are needed, {kind}", hint=f"there are {len(paths)}: {' '.join(paths)}"
        )
    return paths


def _has_classes(path: str) -> bool:
    """Return whether a list of words is a word class file: its lines have four fields."""
    try:
        with open_data(path) as file:
            return len(file.readline().split()) == 4
    except OSError as error:
        raise UserError("CannotRead", f"the list of words {path} cannot be read: {error.strerror or error}") from None


def _one_hot(numbers: np.ndarray, dim: int, dtype: np.dtype) -> Any:
    return sparse_rows(numbers, None, dim, dtype)


def _keys(block: Block) -> range:
    return range(block.begin.sentence, block.begin.sentence + len(block.lengths))
