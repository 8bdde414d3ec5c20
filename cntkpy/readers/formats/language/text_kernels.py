"""The kernels that turn the bytes of a corpus into numbers of words. Every line of a buffer ends in LF."""

from __future__ import annotations

from cntkpy.readers.kernels.jit import inlined, kernel, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int32s, Int64s
from cntkpy.readers.kernels.line_kernels import find_label

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


@inlined
def _blank(c: Int):
    return c == 32 or c == 9 or c == 13


@part
def _is(text: Bytes, begin: Int, end: Int, symbol: Bytes):
    """Return whether text[begin:end] is the symbol, in range as it is as long; an empty symbol is nothing."""
    if len(symbol) == 0 or end - begin != len(symbol):
        return False
    for i in range(len(symbol)):  # noqa: SIM110
        if text[begin + i] != symbol[i]:
            return False
    return True


@inlined
def _lower(c: Int):
    return c + 32 if 65 <= c <= 90 else c


@part
def _is_any_case(text: Bytes, begin: Int, end: Int, symbol: Bytes):
    """As `_is`, in any case."""
    if len(symbol) == 0 or end - begin != len(symbol):
        return False
    for i in range(len(symbol)):  # noqa: SIM110
        if _lower(text[begin + i]) != _lower(symbol[i]):
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
    names_in, starts_in, words_in = table_in
    names_out, starts_out, words_out = table_out
    while state[POSITION] < size and state[TOKENS] < limit:
        p = int(state[POSITION])
        first = n = state[TOKENS]
        trouble = DONE
        while True:
            while _blank(text[p]):
                p += 1
            if text[p] == 10:
                break
            begin = p
            while not (_blank(text[p]) or text[p] == 10):
                p += 1
            number = find_label(text, begin, p, names_in, starts_in, words_in)
            if number < 0:
                number = unknown[0]
            if same:
                output = unknown[2] if _is_any_case(text, begin, p, end_symbol) else number
            else:
                output = find_label(text, begin, p, names_out, starts_out, words_out)
                if output < 0:
                    output = unknown[1]
            if (number < 0 or output < 0) and trouble == DONE:
                trouble = UNKNOWN_INPUT if number < 0 else UNKNOWN_OUTPUT
                state[BEGIN], state[END] = begin, p
            inputs[n], outputs[n] = number, output
            n += 1
        if n - first >= LEAST_TOKENS:
            if trouble != DONE:
                return trouble
            state[TOKENS] = n
            state[SENTENCES] += 1
            bounds[state[SENTENCES]] = n
        state[POSITION] = p + 1
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
    names_in, starts_in, words_in = table_in
    names_out, starts_out, words_out = table_out
    p, line = int(state[POSITION]), state[LINE]
    token, word = state[TOKENS], state[WORDS]
    while state[SENTENCES] < limit and (p < size or (final and token > state[TOKENS])):
        ends = p >= size
        if not ends:
            fields = 0
            first_begin = first_end = begin = end = p
            word_first = word
            while True:
                while _blank(text[p]):
                    p += 1
                if text[p] == 10:
                    break
                if fields > 0:  # the field before was not the last one, hence a word
                    number = find_label(text, begin, end, names_in, starts_in, words_in)
                    number = renumber_in[number] if number >= 0 else unknown[0]
                    if number < 0:
                        state[BEGIN], state[END], state[LINE] = begin, end, line
                        return UNKNOWN_INPUT
                    new = True
                    for i in range(word_first, word):
                        new = new and words[i] != number
                    if new:
                        words[word] = number
                        word += 1
                begin = p
                while not (_blank(text[p]) or text[p] == 10):
                    p += 1
                end = p
                if fields == 0:
                    first_begin, first_end = begin, end
                fields += 1
            p += 1
            line += 1
            ends = fields == 0
            if fields >= 2:
                number = find_label(text, begin, end, names_out, starts_out, words_out)
                number = renumber_out[number] if number >= 0 else unknown[1]
                if number < 0:
                    state[BEGIN], state[END], state[LINE] = begin, end, line - 1
                    return UNKNOWN_OUTPUT
                labels[token] = number
                token += 1
                word_bounds[token] = word
                ends = _is(text, begin, end, end_out) or _is(text, first_begin, first_end, end_in)
        if ends and token > state[TOKENS]:
            state[SENTENCES] += 1
            bounds[state[SENTENCES]] = token
            state[TOKENS], state[WORDS] = token, word
        if token == state[TOKENS]:  # no sentence is open
            state[POSITION], state[LINE] = p, line
    return DONE
