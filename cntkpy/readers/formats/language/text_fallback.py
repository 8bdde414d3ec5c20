"""Pure-Python fallbacks of `text_kernels`, with the same arguments and results."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from cntkpy.readers.common.labels import ids_in

from .codes import (
    BEGIN,
    DONE,
    END,
    LEAST_TOKENS,
    LINE,
    POSITION,
    SENTENCES,
    TOKENS,
    UNKNOWN_INPUT,
    UNKNOWN_OUTPUT,
    WORDS,
)

Array = np.ndarray
Table = tuple[Array, Array, Array]

_words = re.compile(rb"[^ \t\r\n]+").findall
_places = re.compile(rb"[^ \t\r\n]+").finditer


def _lines(text: bytes, position: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines from a position on, without their ends, and where each begins."""
    while position < len(text):
        end = text.index(b"\n", position)
        yield position, text[position:end]
        position = end + 1


def scan_sentences(
    text: Array,
    size: int,
    limit: int,
    table_in: Table,
    table_out: Table,
    unknown: Array,
    end_symbol: Array,
    same: bool,
    inputs: Array,
    outputs: Array,
    bounds: Array,
    state: Array,
) -> int:
    """Sentences, one a line."""
    words = ids_in(*table_in)
    labels = words if same else ids_in(*table_out)
    unknown_input, unknown_output, end = map(int, unknown)
    if same:
        unknown_output = unknown_input
    symbol, whole = end_symbol.tobytes().lower(), text[:size].tobytes()
    position, line, tokens, sentences = state[[POSITION, LINE, TOKENS, SENTENCES]].tolist()
    code = DONE
    for begin, content in _lines(whole, position):
        if tokens >= limit:
            break
        result = _words(content)
        count = len(result)
        if count >= LEAST_TOKENS:
            numbers = [words.get(word, unknown_input) for word in result]
            ends = [labels.get(word, unknown_output) for word in result]
            if same and symbol:
                ends = [end if word.lower() == symbol else number for word, number in zip(result, ends, strict=True)]
            if min(numbers) < 0 or min(ends) < 0:
                wrong = next(i for i in range(count) if numbers[i] < 0 or ends[i] < 0)
                code = UNKNOWN_INPUT if numbers[wrong] < 0 else UNKNOWN_OUTPUT
                place = list(_places(content))[wrong]
                state[BEGIN], state[END] = begin + place.start(), begin + place.end()
                break
            inputs[tokens : tokens + count], outputs[tokens : tokens + count] = numbers, ends
            tokens, sentences = tokens + count, sentences + 1
            bounds[sentences] = tokens
        position, line = begin + len(content) + 1, line + 1
    state[[POSITION, LINE, TOKENS, SENTENCES]] = position, line, tokens, sentences
    return code


def scan_columns(
    text: Array, size: int, limit: int, final: bool, table_in: Table, table_out: Table, unknown: Array,
    renumber_in: Array, renumber_out: Array, end_in: Array, end_out: Array, words: Array, word_bounds: Array,
    labels: Array, bounds: Array, state: Array,
) -> int:  # fmt: skip
    """Sentences of lines `word ... label`."""
    unknown_word, unknown_label = map(int, unknown)
    of_words = {word: int(renumber_in[number]) for word, number in ids_in(*table_in).items()}
    of_labels = {word: int(renumber_out[number]) for word, number in ids_in(*table_out).items()}
    last_word, last_label = end_in.tobytes(), end_out.tobytes()
    whole = text[:size].tobytes()
    line = int(state[LINE])
    count = int(state[TOKENS])
    tokens, word = count, int(state[WORDS])

    def close(position: int) -> None:
        """A sentence has ended, unless none has begun."""
        nonlocal count
        if tokens > count:
            state[SENTENCES] += 1
            bounds[state[SENTENCES]] = tokens
            state[TOKENS], state[WORDS], count = tokens, word, tokens
        state[POSITION], state[LINE] = position, line

    for begin, content in _lines(whole, int(state[POSITION])):
        if state[SENTENCES] >= limit:
            return DONE
        fields = _words(content)
        numbers = [of_words.get(field, unknown_word) for field in fields[:-1]]
        number = of_labels.get(fields[-1], unknown_label) if numbers else 0
        if numbers and (number < 0 or min(numbers) < 0):
            wrong = next((i for i, number in enumerate(numbers) if number < 0), len(numbers))
            place = list(_places(content))[wrong]
            state[BEGIN], state[END], state[LINE] = begin + place.start(), begin + place.end(), line
            return UNKNOWN_OUTPUT if wrong == len(numbers) else UNKNOWN_INPUT
        line += 1
        if numbers:
            different = list(dict.fromkeys(numbers))
            words[word : word + len(different)] = different
            labels[tokens] = number
            word, tokens = word + len(different), tokens + 1
            word_bounds[tokens] = word
        ends = numbers and ((last_label and fields[-1] == last_label) or (last_word and fields[0] == last_word))
        if ends or not fields or tokens == count:
            close(begin + len(content) + 1)
    if final and state[SENTENCES] < limit and tokens > count:
        close(size)
    return DONE
