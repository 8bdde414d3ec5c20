"""A corpus read block by block: some sentences as flat arrays, and where the next block begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from typing import NamedTuple, cast

import numpy as np

from cntkpy.readers.common.packed import believe, text_bytes
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.errors import DataError

from . import codes as k
from .kernels import scans
from .scratch import Scratch
from .vocabulary import Vocabulary, show

_END = b"\n" + bytes(k.PADDING)
READ_BYTES, LEAST_READ_BYTES = 1 << 20, 1 << 16
BYTES_OF_TOKEN = 8
"""Bytes that are read for a word and its blank, at first: what a block does not need is read again."""
SENTENCES_PER_BLOCK = 50000
CACHE_BYTES = 64 << 20
"""Bytes of blocks that are kept, so that the text is scanned once: to look at all lengths, and in each epoch."""


class Place(NamedTuple):
    """A place in a corpus: offset in bytes, number of the line (from 1), number of the sentence (from 0)."""

    offset: int = 0
    line: int = 1
    sentence: int = 0


@dataclass(eq=False)
class Block:
    """Sentences begin.sentence, ... with the numbers of their words.

    Sentence k has the tokens bounds[k] .. bounds[k+1]-1. inputs, outputs int32[tokens]: word and label of each; where
    tokens have several words, those of token i are inputs[words[i]:words[i+1]].
    """

    begin: Place
    end: Place
    bounds: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray
    words: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        """Memory of its arrays."""
        arrays = (self.bounds, self.inputs, self.outputs, self.words)
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of every sentence, int64."""
        return np.diff(self.bounds)


class Measures(NamedTuple):
    """Size of a corpus: its tokens, those of the longest sentence, its sentences."""

    tokens: int
    longest: int
    sentences: int


class Corpus:
    """A text file of sentences. vocabularies: of words and of labels, which may be the same."""

    what = "sentence"

    def __init__(self, path: str, words: Vocabulary, labels: Vocabulary):
        self.path, self.words, self.labels = path, words, labels
        try:
            self._data = text_bytes(path)
            self.path = self._data.path
            self._start = Place(3) if self._data.bytes(0, 3) == b"\xef\xbb\xbf" else Place()
            self.size = self._data.size
        except OSError as error:
            raise DataError(f"The corpus {path} cannot be read: {error.strerror or error}", path=path) from None
        self._kept: dict[Place, Block] = {}
        self._room = CACHE_BYTES
        self._piece = READ_BYTES
        self._scratch: list[Scratch] = []
        """That of no thread at present."""

    def block(self, begin: Place | None = None) -> Block | None:
        """Return the block that begins here (at the start of the file, if no place is given), None at the end."""
        begin = begin or self._start
        block = self._kept.get(begin)
        if block is not None:
            return block
        block = self._read(begin)
        if block is None and begin == self._start:
            raise DataError(f"The corpus {self.path} has no {self.what}.", path=self.path, hint=self.hint)
        if block is not None and block.nbytes <= self._room:
            self._room -= block.nbytes
            self._kept[begin] = block
        return block

    hint = ""

    def blocks(self) -> Iterator[Block]:
        """Yield all blocks, from the start of the file."""
        block = self.block()
        while block is not None:
            yield block
            block = self.block(block.end)

    @cached_property
    def measures(self) -> Measures:
        """Size of the corpus; reads all of it, once."""
        result = [(int(b.bounds[-1]), int(b.lengths.max()), len(b.bounds) - 1) for b in self.blocks()]
        tokens, longest, sentences = zip(*result, strict=True)
        return Measures(sum(tokens), max(longest), sum(sentences))

    def _read(self, begin: Place) -> Block | None:
        """Pieces of text are scanned until the block is full or the text ends."""
        parts: list[Block] = []
        place, size = begin, self._piece
        scratch = self._scratch.pop() if self._scratch else Scratch()
        with self._data.stream() as stream:
            file = cast("BufferedReader", stream)
            while place.offset < self.size and not self._full(parts):
                file.seek(place.offset)
                size = min(size, self.size - place.offset)
                data = scratch.text(size + 1 + k.PADDING)
                count = file.readinto(memoryview(data)[:size])
                if not count:
                    raise DataError(f"The corpus {self.path} became shorter while it was read.", path=self.path)
                data[count : count + 1 + k.PADDING] = _END
                final = place.offset + count >= self.size
                length = count + (data[count - 1] != _END[0]) if final else data.rfind(b"\n", 0, count) + 1
                text = np.frombuffer(data, np.uint8, length)
                part = self._scan(text, place, final, parts, scratch) if length else None
                if part is None or part.end.offset == place.offset:
                    size *= 2  # a line or a sentence is longer than the piece
                    believe(self._data, size, place.offset)
                    continue
                size, place = self._piece, part.end
                if len(part.bounds) > 1:
                    parts.append(part)
        if place.offset < self.size:
            self._scratch.append(scratch)
        if not parts:
            return None
        return _joined(begin, place._replace(offset=min(place.offset, self.size)), parts)

    def _full(self, parts: list[Block]) -> bool:
        raise NotImplementedError

    def _scan(self, text: np.ndarray, begin: Place, final: bool, parts: list[Block], scratch: Scratch) -> Block:
        """Return the sentences of a piece of text; `end` is where reading continues."""
        raise NotImplementedError

    def _unknown(self, text: np.ndarray, state: np.ndarray, is_label: bool) -> DataError:
        begin, end, line = int(state[k.BEGIN]), int(state[k.END]), int(state[k.LINE])
        word = text[begin:end].tobytes()
        start = text[:begin].tobytes().rfind(b"\n") + 1
        column = len(text[start:begin].tobytes().decode("utf-8", "replace")) + 1
        reason = "label" if is_label and self.labels is not self.words else "word"
        return DataError(
            f"{self.path}:{line}:{column}: the {reason} '{show(word)}' is not in the list of {reason}s, nor is the one "
            "that stands for unknown ones.",
            path=self.path,
            line=line,
            hint=f"list it, or list a {reason} for all unknown ones and name it with unk=",
        )


def _bytes(symbol: bytes) -> np.ndarray:
    return np.array(list(symbol), np.uint8)


def _joined(begin: Place, end: Place, parts: list[Block]) -> Block:
    if len(parts) == 1:
        only = parts[0]
        return Block(begin, end, only.bounds, only.inputs, only.outputs, only.words)
    tokens = starts_of([part.bounds[-1] for part in parts])
    bounds = np.concatenate(
        [np.zeros(1, np.int64), *(p.bounds[1:] + token for p, token in zip(parts, tokens, strict=False))]
    )
    inputs = np.concatenate([part.inputs for part in parts])
    outputs = np.concatenate([part.outputs for part in parts])
    if all(part.words is None for part in parts):
        return Block(begin, end, bounds, inputs, outputs)
    firsts = starts_of([len(part.inputs) for part in parts])
    words = [np.arange(len(part.inputs) + 1) if part.words is None else part.words for part in parts]
    result = [of_part[1:] + first for of_part, first in zip(words, firsts, strict=False)]
    return Block(begin, end, bounds, inputs, outputs, np.concatenate([np.zeros(1, np.int64), *result]))


class LineCorpus(Corpus):
    """A sentence a line. The label of a token is the token itself, by the vocabulary of labels.

    end_symbol: a word that is known as a label in upper and lower case, if both vocabularies are the same. tokens: a
    block has that many, and the rest of the last line.
    """

    what = "sentence of three or more words"
    hint = "a sentence is a line, with the symbols for its begin and end; lines of one or two words are left out"

    def __init__(self, path: str, words: Vocabulary, labels: Vocabulary, end_symbol: bytes, tokens: int):
        super().__init__(path, words, labels)
        self._tokens = min(max(tokens, 1), 2**62)
        self._piece = min(max(BYTES_OF_TOKEN * self._tokens, LEAST_READ_BYTES), READ_BYTES)
        end = words.number(end_symbol)
        self._end_symbol = _bytes(end_symbol if end >= 0 else b"")
        self._numbers = np.array([words.unknown, labels.unknown, end], np.int64)

    def _full(self, parts: list[Block]) -> bool:
        return sum(len(part.inputs) for part in parts) >= self._tokens

    def _scan(self, text: np.ndarray, begin: Place, final: bool, parts: list[Block], scratch: Scratch) -> Block:
        most = len(text) // 2 + 1
        inputs, outputs = (scratch.room(name, most, np.int32) for name in ("inputs", "outputs"))
        bounds, state = scratch.room("bounds", most // k.LEAST_TOKENS + 2, np.int64), np.zeros(8, np.int64)
        bounds[0] = 0
        state[k.LINE] = begin.line
        limit = self._tokens - sum(len(part.inputs) for part in parts)
        code = scans(len(text), len(self.words) + len(self.labels)).scan_sentences(
            text,
            len(text),
            limit,
            self.words.table,
            self.labels.table,
            self._numbers,
            self._end_symbol,
            self.words is self.labels,
            inputs,
            outputs,
            bounds,
            state,
        )
        if code != k.DONE:
            raise self._unknown(text, state, code == k.UNKNOWN_OUTPUT)
        n, count = int(state[k.TOKENS]), int(state[k.SENTENCES])
        end = Place(begin.offset + int(state[k.POSITION]), int(state[k.LINE]), begin.sentence + count)
        return Block(begin, end, bounds[: count + 1].copy(), inputs[:n].copy(), outputs[:n].copy())


@dataclass
class Ends:
    """The symbols after which a sentence ends: as first word of a line, as its label. Empty for none."""

    word: bytes
    label: bytes


class ColumnCorpus(Corpus):
    """Lines `word ... label`, with an empty line between sentences. renumbered: their numbers as given out."""

    hint = "each line has a word and its label; an empty line is between sentences"

    def __init__(
        self, path: str, words: Vocabulary, labels: Vocabulary, ends: Ends, renumbered: tuple[np.ndarray, np.ndarray]
    ):
        super().__init__(path, words, labels)
        self._ends, self._renumbered = ends, renumbered
        self._unknown_numbers = np.array([words.unknown, labels.unknown], np.int64)

    def first_line(self, block: Block, sentence: int) -> int:
        """Return the line on which a sentence of a block begins; every line with two fields or more is a token."""
        previous_bound, line = int(block.bounds[sentence]), block.begin.line
        with self._data.stream() as file:
            file.seek(block.begin.offset)
            for text in file:
                previous_bound -= len(text.split(None, 1)) == 2  # a second field is there, whatever is in it
                if previous_bound < 0:
                    break
                line += 1
        return line

    def _full(self, parts: list[Block]) -> bool:
        return sum(len(part.bounds) - 1 for part in parts) >= SENTENCES_PER_BLOCK

    def _scan(self, text: np.ndarray, begin: Place, final: bool, parts: list[Block], scratch: Scratch) -> Block:
        most = len(text) // 4 + 1
        words, labels = scratch.room("words", len(text) // 2 + 1, np.int32), scratch.room("labels", most, np.int32)
        word_bounds, bounds = (scratch.room(name, most + 1, np.int64) for name in ("word_bounds", "bounds"))
        word_bounds[0] = bounds[0] = 0
        state = np.zeros(8, np.int64)
        state[k.LINE] = begin.line
        limit = SENTENCES_PER_BLOCK - sum(len(part.bounds) - 1 for part in parts)
        symbols = _bytes(self._ends.word), _bytes(self._ends.label)
        code = scans(len(text), len(self.words) + len(self.labels)).scan_columns(
            text, len(text), limit, final, self.words.table, self.labels.table, self._unknown_numbers,
            *self._renumbered, *symbols, words, word_bounds, labels, bounds, state,
        )  # fmt: skip
        if code != k.DONE:
            raise self._unknown(text, state, code == k.UNKNOWN_OUTPUT)
        n, count, m = int(state[k.TOKENS]), int(state[k.SENTENCES]), int(state[k.WORDS])
        end = Place(begin.offset + int(state[k.POSITION]), int(state[k.LINE]), begin.sentence + count)
        parts_of_tokens = word_bounds[: n + 1].copy() if m > n else None  # every token has a word at least
        return Block(begin, end, bounds[: count + 1].copy(), words[:m].copy(), labels[:n].copy(), parts_of_tokens)
