"""`action = writeWordAndClass`: the vocabulary of a corpus, and word classes for class-based language models.

Words of equal count stand in CNTK's order: see `hash_order`.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import LIST_LIMIT, read_input
from cntkpy.cntk_config.base.writing import atomic_write, shown
from cntkpy.cntk_config.declare import BOOLEAN, COUNT, PATH, SIZE, TEXT, Declared, Parameter
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.hash_order import most_frequent_first

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext

log = logging.getLogger("cntkpy.commands")

Words = list[tuple[str, int]]
"""Words with their counts."""


ENTRY = Entry(
    "action",
    ("writeWordAndClass",),
    parameters="cntkpy.commands.actions.write_word_and_class:WriteWordAndClassParameters",
    factory="cntkpy.commands.actions.write_word_and_class:write_word_and_class",
    traits=frozenset({"without JAX"}),
)


class WriteWordAndClassParameters(Declared):
    """`action=writeWordAndClass`: writes the vocabulary of a corpus, and classes of words."""

    input_file = Parameter("inputFile", PATH, help="The corpus: one sentence a line, words separated by blanks.")
    vocabulary_file = Parameter("outputVocabFile", PATH, help="Where the vocabulary goes: index, count, word, class.")
    vocabulary_size = Parameter("vocabSize", COUNT, help="Words in the vocabulary, `unk` included; used with classes.")
    begin = Parameter("beginSequence", TEXT, help="The word that begins a sentence; added where it is missing.")
    end = Parameter("endSequence", TEXT, help="The word that ends a sentence; added where it is missing.")
    classes = Parameter("nbrClass", COUNT, default="0", help="Number of classes; 0: the words in order, no classes.")
    word_to_class = Parameter(
        "outputWord2Cls", PATH, default=None, help="Where the class of every word goes; needed with classes."
    )
    class_to_index = Parameter(
        "outputCls2Index", PATH, default=None, help="Where the first word of every class goes; needed with classes."
    )
    mapping_file = Parameter("outputMappingFile", PATH, default=None, help="Where the words alone go, one a line.")
    cutoff = Parameter(
        "cutoff", SIZE, default="1", help="Words that occur no more often than this do not count for the size."
    )
    unknown_word = Parameter("unk", TEXT, default="<unk>", help="The word that stands for all that are left out.")
    make_mode = Parameter(
        "makeMode", BOOLEAN, default="true", help="Do nothing if the files are newer than the corpus."
    )


def write_word_and_class(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = WriteWordAndClassParameters(section)
    begin, end = str(p.begin), str(p.end)
    outputs = [p.vocabulary_file, p.mapping_file]
    if p.classes:
        for name, path in (("outputWord2Cls", p.word_to_class), ("outputCls2Index", p.class_to_index)):
            if not path:
                raise p.error(name, f"nbrClass={p.classes} needs {name}", kind="MissingParameter")
            outputs.append(path)
    if p.make_mode and _up_to_date(p.input_file, [path for path in outputs if path]):
        log.info("The vocabulary %s is up to date.", p.vocabulary_file)
        return
    words = count_words(_lines(p), begin, end)
    if p.classes:
        vocabulary = choose_words(words, _size(p, words), str(p.unknown_word))
        classes = word_classes([count for _, count in vocabulary], p.classes)
    else:
        vocabulary = sorted(words.items())
        classes = [0] * len(vocabulary)
    rows = [
        f"     {index}\t     {count}\t{word}\t{number}"
        for index, ((word, count), number) in enumerate(zip(vocabulary, classes, strict=True))
    ]
    _write(p.vocabulary_file, rows)
    if p.mapping_file:
        _write(p.mapping_file, (word for word, _ in vocabulary))
    if p.word_to_class and p.class_to_index and p.classes:
        _write(p.word_to_class, classes)
        _write(p.class_to_index, [classes.index(number) for number in range(classes[-1] + 1)])
    log.info("Vocabulary of %d words out of %d: %s", len(vocabulary), len(words), p.vocabulary_file)


def count_words(lines: Iterable[str], begin: str, end: str) -> Counter[str]:
    """Count every word, with the symbols around sentences; equal symbols are counted once a
    line."""
    counts: Counter[str] = Counter()
    for line in lines:
        words = line.split()
        if not words or words[0] != begin:
            words.insert(0, begin)
        if words[-1] != end or len(words) == 1:
            words.append(end)
        counts.update(words[1:] if begin == end else words)
    return counts


def choose_words(counts: Counter[str], size: int, unknown: str) -> Words:
    """Return the most frequent words and the unknown word, which stands for the others; most frequent first."""
    kept: Words = []
    numbers: dict[str, int] = {}
    queue = most_frequent_first(counts)
    while len(numbers) - (unknown in numbers) < size - 1 and (word := next(queue, None)) is not None:
        numbers[word] = counts[word]
    numbers[unknown] = counts[unknown] * (unknown in numbers) + sum(counts[word] for word in queue)
    for word in most_frequent_first(numbers):
        kept.append((word, numbers[word]))
    return kept


def word_classes(counts: list[int], classes: int) -> list[int]:
    """Return a class for every word: each class has about the same sum of the square roots of the frequencies."""
    total = sum(counts)
    roots = [math.sqrt(count / total) for count in counts]
    whole = sum(roots)
    result: list[int] = []
    number = 0
    for reached in itertools.accumulate(root / whole for root in roots):
        # a class has one word at least, so that none is empty
        if reached > (number + 1) / classes and number < classes - 1 and number in result[-1:]:
            number += 1
        result.append(number)
    return result


def _size(p: WriteWordAndClassParameters, words: Counter[str]) -> int:
    permitted = sum(count > p.cutoff for count in words.values())
    size = min(p.vocabulary_size, permitted)
    if size < p.vocabulary_size:
        log.info("Only %d words occur more than %d times: vocabSize is %d.", permitted, p.cutoff, size)
    if size < p.classes:
        raise p.error("nbrClass", f"{p.classes} classes need as many words, but the vocabulary has {size}")
    return size


def _lines(p: WriteWordAndClassParameters) -> list[str]:
    try:
        content = read_input(str(p.input_file), LIST_LIMIT).removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise p.error("inputFile", f"cannot read {p.input_file}: {error.strerror or error}") from None
    text = content.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise p.error("inputFile", f"{p.input_file} has no words")
    return lines


def _up_to_date(source: str, outputs: list[str]) -> bool:
    try:
        made = Path(source).stat().st_mtime
        return all(Path(path).stat().st_mtime > made for path in outputs)
    except OSError:
        return False


def _write(path: str, rows: Iterable[object]) -> None:
    try:
        with atomic_write(path) as file:
            for row in rows:
                file.write(f"{row}\n".encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise UserError("CannotWrite", f"cannot write {shown(path)}: {error.strerror or error}") from None
