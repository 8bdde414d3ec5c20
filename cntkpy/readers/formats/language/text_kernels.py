"""The kernels that turn the bytes of a corpus into numbers of words.

Every line of a buffer ends in LF, and `PADDING` more bytes can be read after the last one.
"""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import inlined, kernel, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int32s, Int64s
from cntkpy.readers.kernels.label_kernels import hash_at, number_of
from cntkpy.readers.kernels.words import borrowed, byte_at, separators, trailing_zeros

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

_1 = np.uint64(1)


@inlined
def _lower(c: Int):
    return c + 32 if 65 <= c <= 90 else c


@part
def _is(begin: Int, length: Int, symbol: Bytes, any_case: bool):
    """Return whether the bytes from an address on are the symbol, in range as it is as long."""
    for i in range(length):
        c = byte_at(begin + i)
        if c != symbol[i] and not (any_case and _lower(c) == _lower(symbol[i])):
            return False
    return True


@kernel
def scan_sentences(
    text: Bytes,
    size: Int,
    limit: Int,
    table_in: tuple[Bytes, Int64s, Int64s],
    table_out: tuple[Bytes, Int64s, Int64s],
    unknown: Int64s,
    end_symbol: Bytes,
    same: bool,
    inputs: Int32s,
    outputs: Int32s,
    bounds: Int64s,
    state: Int64s,
):
    """Sentences, one a line, from text[state[POSITION]:size], until there are `limit` tokens.

    table_in, table_out: (names, starts, table) of a vocabulary; same: both are the same, but for the end symbol in any
    case, which is number unknown[2] as an output. unknown int64[3]: numbers of unknown words, -1 if there are none.
    inputs, outputs int32[tokens]: the words' numbers; bounds int64[n+1]: first token of each sentence.

    In range: text[:size] ends in LF, where every line stops. A token takes two bytes at least and a sentence three
    tokens; the caller gives room for half as many tokens as there are bytes, and a third as many sentences as tokens.
    """
    names_in, starts_in, words_in = borrowed(table_in[0]), borrowed(table_in[1]), borrowed(table_in[2])
    names_out, starts_out, words_out = borrowed(table_out[0]), borrowed(table_out[1]), borrowed(table_out[2])
    inputs, outputs, symbol = borrowed(inputs), borrowed(outputs), borrowed(end_symbol)
    base, symbol_length = text.ctypes.data, len(end_symbol)
    p, stop = base + state[POSITION], base + size
    n = int(state[TOKENS])
    block, seen = p, separators(p)
    while p < stop and n < limit:
        first = n
        trouble = DONE
        while True:
            while seen == 0:
                block += 64
                seen = separators(block)
            begin, end = p, block + trailing_zeros(seen)
            seen &= seen - _1
            p = end + 1
            if end > begin:
                h = hash_at(begin, end - begin)
                number = number_of(begin, end - begin, h, names_in, starts_in, words_in)
                if number < 0:
                    number = unknown[0]
                if same:
                    output = number
                    if end - begin == symbol_length and _is(begin, symbol_length, symbol, True):
                        output = unknown[2]
                else:
                    output = number_of(begin, end - begin, h, names_out, starts_out, words_out)
                    if output < 0:
                        output = unknown[1]
                if (number < 0 or output < 0) and trouble == DONE:
                    trouble = UNKNOWN_INPUT if number < 0 else UNKNOWN_OUTPUT
                    state[BEGIN], state[END] = begin - base, end - base
                inputs[n], outputs[n] = number, output
                n += 1
            if byte_at(end) == 10:
                break
        if n - first < LEAST_TOKENS:
            n = first
        elif trouble != DONE:
            return trouble
        else:
            state[TOKENS] = n
            state[SENTENCES] += 1
            bounds[state[SENTENCES]] = n
        state[POSITION] = p - base
        state[LINE] += 1
    return DONE


@kernel
def scan_columns(
    text: Bytes, size: Int, limit: Int, final: bool, table_in: tuple[Bytes, Int64s, Int64s],
    table_out: tuple[Bytes, Int64s, Int64s], unknown: Int64s, renumber_in: Int32s, renumber_out: Int32s, end_in: Bytes,
    end_out: Bytes, words: Int32s, word_bounds: Int64s, labels: Int32s, bounds: Int64s, state: Int64s,
):  # fmt: skip
    """Sentences of lines `word ... label` from text[state[POSITION]:size], until there are `limit` of them.

    final: the text ends here, and so does its last sentence; else a sentence without end is left for the next call.
    renumber_in, renumber_out int32: numbers of words as they are given out. end_in, end_out uint8: the symbols after
    which a sentence ends. words int32: numbers of the words of all tokens, each once in a token; word_bounds
    int64[tokens+1]; labels int32[tokens]; bounds int64[n+1].

    In range: text[:size] ends in LF, where every line stops. A word takes two bytes at least, a token four, a sentence
    one token; the caller gives room for as many as the bytes allow. Numbers come from the vocabularies, for each of
    whose words renumber_in and renumber_out have a place.
    """
    names_in, starts_in, words_in = borrowed(table_in[0]), borrowed(table_in[1]), borrowed(table_in[2])
    names_out, starts_out, words_out = borrowed(table_out[0]), borrowed(table_out[1]), borrowed(table_out[2])
    end_in, end_out, words = borrowed(end_in), borrowed(end_out), borrowed(words)
    base, end_length, first_end_length = text.ctypes.data, len(end_out), len(end_in)
    p, stop, line = base + state[POSITION], base + size, state[LINE]
    token, word = state[TOKENS], state[WORDS]
    block, seen = p, np.uint64(0)
    if p < stop:
        seen = separators(p)
    while state[SENTENCES] < limit and (p < stop or (final and token > state[TOKENS])):
        ends = p >= stop
        if not ends:
            fields = 0
            first_begin = first_end = begin = end = p
            word_first = word
            while True:
                while seen == 0:
                    block += 64
                    seen = separators(block)
                start, p = p, block + trailing_zeros(seen)
                seen &= seen - _1
                if p > start:
                    if fields > 0:  # the field before was not the last one, hence a word
                        h = hash_at(begin, end - begin)
                        number = number_of(begin, end - begin, h, names_in, starts_in, words_in)
                        number = renumber_in[number] if number >= 0 else unknown[0]
                        if number < 0:
                            state[BEGIN], state[END], state[LINE] = begin - base, end - base, line
                            return UNKNOWN_INPUT
                        new = True
                        for i in range(word_first, word):
                            new = new and words[i] != number
                        if new:
                            words[word] = number
                            word += 1
                    else:
                        first_begin, first_end = start, p
                    begin, end = start, p
                    fields += 1
                p += 1
                if byte_at(p - 1) == 10:
                    break
            line += 1
            ends = fields == 0
            if fields >= 2:
                h = hash_at(begin, end - begin)
                number = number_of(begin, end - begin, h, names_out, starts_out, words_out)
                number = renumber_out[number] if number >= 0 else unknown[1]
                if number < 0:
                    state[BEGIN], state[END], state[LINE] = begin - base, end - base, line - 1
                    return UNKNOWN_OUTPUT
                labels[token] = number
                token += 1
                word_bounds[token] = word
                ends = end_length > 0 and end - begin == end_length and _is(begin, end_length, end_out, False)
                if 0 < first_end_length == first_end - first_begin:
                    ends = ends or _is(first_begin, first_end_length, end_in, False)
        if ends and token > state[TOKENS]:
            state[SENTENCES] += 1
            bounds[state[SENTENCES]] = token
            state[TOKENS], state[WORDS] = token, word
        if token == state[TOKENS]:  # no sentence is open
            state[POSITION], state[LINE] = p - base, line
    return DONE
