"""Words and their numbers: lists of words, word classes, word maps, each from a text file of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cntkpy.cntk_config.base.files import LIST_LIMIT
from cntkpy.cntk_config.declare import Declared
from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.common.packed import read_data
from cntkpy.readers.errors import DataError

log = logging.getLogger("cntkpy.readers")
BLANKS = b" \t\r\n\v\f"


class Vocabulary:
    """Words with numbers 0, 1, 2, ... and the word that stands for all others."""

    def __init__(self, words: list[bytes], unknown: bytes):
        self.words = words
        self.numbers = LabelMap(words)
        self.unknown = self.number(unknown)
        """Number of the word for unknown words, -1 if it is not listed."""

    def __len__(self) -> int:
        return len(self.words)

    def number(self, word: bytes) -> int:
        """Number of a word, -1 if it is not listed."""
        return self.numbers.ids.get(word, -1)

    def names(self) -> dict[int, str]:
        """Return the words by number, as text."""
        return dict(enumerate(map(show, self.words)))

    @property
    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lookup table of the kernels."""
        return self.numbers.names, self.numbers.starts, self.numbers.table


def warn_of_end(word: str, section: str, vocabulary: Vocabulary) -> None:
    """Warn that the `endSequence` of a section is no word of its list, so that it ends no sentence.

    Args:
        word: `endSequence`; nothing is said of an empty one.
        section: the name of the section.
        vocabulary: its list.
    """
    if word and vocabulary.number(word.encode()) < 0:
        log.warning("WARNING: endSequence of '%s' has no effect: '%s' is not in its list of words.", section, word)


@dataclass
class WordClasses:
    """Words in order of their numbers, how often each occurs, and its class (-1: none are given)."""

    words: list[bytes]
    counts: np.ndarray
    classes: np.ndarray

    def bounds(self) -> np.ndarray:
        """int64 (words, 3): class, first word of the class, one past its last word."""
        classes = self.classes
        first = np.searchsorted(classes, classes, side="left")
        return np.stack([classes, first, np.searchsorted(classes, classes, side="right")], axis=1)


def _is_number(text: bytes) -> bool:
    """Return whether a word is a whole number that an array of int64 can hold."""
    return text.isdigit() and len(text) <= _DIGITS


_DIGITS = 18


def show(word: bytes) -> str:
    """Return a word as messages show it."""
    return word.decode("utf-8", "replace")


def read_lines(p: Declared, name: str, kind: str) -> tuple[str, list[bytes]]:
    """Path and trimmed lines of the file that a parameter names; a file that cannot be read is a located error."""
    value = p.given(name)
    path = str(value or "")
    try:
        content = read_data(path, LIST_LIMIT)
    except OSError as error:
        raise p.error(name, f"the {kind} {path} cannot be read: {error.strerror or error}", kind="CannotRead") from None
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1].strip(BLANKS):
        lines.pop()
    if not lines:
        raise DataError(f"The {kind} {path} is empty.", path=path, hint="it holds one word a line")
    return path, [line.strip(BLANKS) for line in lines]


def numbered(path: str, lines: list[bytes], kind: str) -> Iterator[tuple[int, bytes]]:
    """Line numbers and words; a word that occurs twice is an error."""
    places: dict[bytes, int] = {}
    for line, word in enumerate(lines, 1):
        if word in places:
            raise DataError(
                f"The word '{show(word)}' occurs twice in the {kind} {path} (line {places[word]} and line {line}).",
                path=path,
                line=line,
                hint="the number of a word is that of its line",
            )
        places[word] = line
        yield line, word


def load_mapping(p: Declared, name: str = "labelMappingFile") -> list[bytes]:
    """Return the words of a label mapping file, one a line."""
    path, lines = read_lines(p, name, "label mapping file")
    words: list[bytes] = []
    for line, word in numbered(path, lines, "label mapping file"):
        if not word:
            raise DataError(
                f"Line {line} of the label mapping file {path} is empty.",
                path=path,
                line=line,
                hint="the number of a word is that of its line, so no line may be empty",
            )
        words.append(word)
    return words


def _up_to_empty(path: str, lines: list[bytes], reason: str) -> list[bytes]:
    """Return the lines in front of the first empty one, where reading ends. There is a warning about others after
    it.
    """
    if b"" not in lines:
        return lines
    end = lines.index(b"")
    if behind := sum(map(bool, lines[end:])):
        text = "The %s %s ends at line %d, which is empty; %d after it are not read."
        log.warning(text, reason, path, end + 1, behind, extra=ABOUT_DATA)
    return lines[:end]


def load_tokens(p: Declared, with_classes: bool) -> WordClasses:
    """Return a list of words, one a line, up to the first empty line; with classes, `word class`."""
    path, lines = read_lines(p, "token", "list of words")
    lines = _up_to_empty(path, lines, "list of words")
    if not lines:
        raise DataError(
            f"The list of words {path} begins with an empty line.",
            path=path,
            line=1,
            hint="reading ends at such a line",
        )
    words, classes = [line.split()[0] if with_classes else line for line in lines], np.full(len(lines), -1, np.int64)
    usual = not with_classes and len(set(words)) == len(words)
    for line, _ in () if usual else numbered(path, words, "list of words"):
        if with_classes:
            fields = lines[line - 1].split()
            if len(fields) != 2 or not _is_number(fields[1]):
                raise DataError(
                    f"Line {line} of the list of words {path} is not `word class`: '{show(lines[line - 1])}'.",
                    path=path,
                    line=line,
                    hint="mode=class needs a word and the number of its class in every line",
                )
            classes[line - 1] = int(fields[1])
    _check_order(path, classes, "list of words")
    return WordClasses(words, np.ones(len(words)), classes)


def load_word_classes(p: Declared, name: str = "wordclass") -> WordClasses:
    """Return a word class file: lines `number count word class`, each number once, classes that never go down."""
    path, lines = read_lines(p, name, "word class file")
    word_classes = _usual_classes(lines) or _checked_classes(path, lines)
    _check_order(path, word_classes.classes, "word class file")
    return word_classes


def _usual_classes(lines: list[bytes]) -> WordClasses | None:
    """Return the words of a word class file whose lines are as `writeWordAndClass` writes them; else None.

    Fields are split for all lines at once: a list for each line takes three times as long.
    """
    text, line = b"\n".join(lines), (b"\t" if b"\t" in lines[0] else b" ").join([b"%b"] * 4)
    fields = text.split()
    if len(fields) != 4 * len(lines) or b"\n".join([line] * len(lines)) % tuple(fields) != text:
        return None
    numbers, counts, words, classes = (fields[i::4] for i in range(4))
    if not all(
        all(map(bytes.isdigit, array)) and max(map(len, array)) <= _DIGITS for array in (numbers, counts, classes)
    ):
        return None
    places = _whole_numbers(numbers)
    order = places.argsort()
    if len(set(words)) < len(words) or not np.array_equal(places[order], np.arange(len(words))):
        return None
    several = _whole_numbers(counts).astype(np.float64), _whole_numbers(classes)
    return WordClasses([words[i] for i in order.tolist()], *(value[order] for value in several))


def _whole_numbers(fields: list[bytes]) -> np.ndarray:
    """Return numbers of digits only as int64."""
    return np.fromstring(b" ".join(fields), np.int64, sep=" ")  # int() of each takes three times as long


def _checked_classes(path: str, lines: list[bytes]) -> WordClasses:
    """Return the words of a word class file, line by line, up to what is wrong."""
    words: list[bytes | None] = [None] * len(lines)
    counts, classes = np.zeros(len(lines)), np.zeros(len(lines), np.int64)
    for line, text in enumerate(lines, 1):
        fields = text.split()
        wrong = None
        if len(fields) != 4:
            wrong = f"has {len(fields)} fields, not the four `number count word class`"
        elif not _is_number(fields[0]) or not _is_number(fields[3]):
            wrong = "does not hold whole numbers as number and class of the word"
        elif int(fields[0]) >= len(lines) or words[int(fields[0])] is not None:
            wrong = f"has the number {show(fields[0])}, but words are numbered 0 to {len(lines) - 1}, each once"
        else:
            number = int(fields[0])
            words[number], classes[number] = fields[2], int(fields[3])
            try:
                counts[number] = int(float(fields[1]))
            except (ValueError, OverflowError):
                wrong = f"has the count '{show(fields[1])}', which is not a number"
        if wrong:
            hint = "action=writeWordAndClass makes such a file"
            raise DataError(f"Line {line} of the word class file {path} {wrong}.", path=path, line=line, hint=hint)
    result = [word for word in words if word is not None]
    for _ in numbered(path, result, "word class file"):
        pass
    return WordClasses(result, counts, classes)


def _check_order(path: str, classes: np.ndarray, kind: str) -> None:
    down = np.flatnonzero(np.diff(classes) < 0)
    if len(down):
        number = int(down[0]) + 1
        raise DataError(
            f"The classes in the {kind} {path} go down: word {number} has class {classes[number]}, the one before it "
            f"{classes[number - 1]}.",
            path=path,
            line=number + 1,
            hint="sort the words by their classes",
        )


def load_word_map(p: Declared) -> dict[bytes, tuple[bytes, int]]:
    """Lines `from to` up to the first empty line: by word, what it is replaced by, and the number of the line."""
    path, lines = read_lines(p, "wordmap", "word map")
    pairs: dict[bytes, tuple[bytes, int]] = {}
    for line, text in enumerate(_up_to_empty(path, lines, "word map"), 1):
        fields = text.split()
        if len(fields) != 2:
            raise DataError(
                f"Line {line} of the word map {path} has {len(fields)} column{'s'[: len(fields) != 1]}, not two: "
                f"'{show(text)}'.",
                path=path,
                line=line,
                hint="each line is a word and the word that replaces it",
            )
        pairs[fields[0]] = fields[1], line
    return pairs


def renumber(p: Declared, vocabulary: Vocabulary, word_map: dict[bytes, tuple[bytes, int]]) -> np.ndarray:
    """Numbers of words after the word map, int32[words]; words that it does not list are unknown words."""
    path = str(p.given("wordmap") or "")
    out = np.empty(len(vocabulary), np.int32)
    for number, word in enumerate(vocabulary.words):
        to, line = word_map.get(word, (b"", 0))
        out[number] = vocabulary.number(to) if line else vocabulary.unknown
        if out[number] < 0:
            message = (
                f"Line {line} of the word map {path}: '{show(to)}' is not in the list of words."
                if line
                else f"The word '{show(word)}' is not in the word map {path}, and the list of words has no `unk`."
            )
            raise DataError(message, path=path, line=line or None, hint="list the word, or set unk to a listed word")
    return out
