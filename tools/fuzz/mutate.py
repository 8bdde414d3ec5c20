"""Mutations of an input: of its bytes, and of its words where it is text."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

NUMBERS = (
    b"0", b"-1", b"1", b"2", b"255", b"65536", b"2147483647", b"2147483648", b"-2147483648", b"4294967296",
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"1e308", b"-1e-320", b"1e999", b"nan",
    b"inf", b"0x7f", b"1#INF", b"1:2*1000000000",
)  # fmt: skip
"""Numbers at the edges of types and ranges."""

STRANGE = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\t", b"\\", b'"', b"'", b"$", b"$x$", b"#", b"..",
    b"/dev/zero", b"\xc2\xb2", b"\xe2\x80\x9c", b"[", b"]", b"(", b")", b"{", b"}", b"=", b":", b";", b",", b"*",
    b"|", b"%s", b"~",
)  # fmt: skip
"""Bytes that mean something to a format, or nothing at all."""

WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|\s+|.", re.DOTALL)

BINARY_LENGTHS = (1, 2, 4, 8)

TIMES = 50_000
"""How many times a piece is repeated: what takes quadratic time for it exceeds the limit of a case."""
LONGEST = 2_000_000
"""Bytes of a repetition at most: trees and tokens take hundreds of bytes of memory for each byte of a script."""
REPEATED = (*(bytes([code]) for code in range(32, 127)), b"\n", b"\t", b"\r\n", b"\x00", b"\xff", b"\xc3\xa9")
"""Pieces that are repeated although the input has none of them."""
LONG_ONE_IN = 50
"""One in so many inputs has a long repetition; each takes as much time as hundreds of the others."""


def mutated(seed: bytes, others: Sequence[bytes], draw: random.Random, text: bool) -> bytes:
    """A seed after one to eight mutations.

    Args:
        seed: the input to start from.
        others: inputs of the same format, from which pieces are taken.
        draw: where the chances come from; the result is a function of it.
        text: whether words are mutated, too.

    Returns:
        The bytes of the new input.
    """
    if draw.randrange(LONG_ONE_IN) == 0:
        return lengthened(seed, draw)
    data = seed
    for _ in range(1 + min(draw.getrandbits(3), draw.getrandbits(3))):
        data = _words(data, others, draw) if text and draw.random() < 0.7 else _bytes(data, others, draw)
    return data


def lengthened(seed: bytes, draw: random.Random) -> bytes:
    """A seed with one piece repeated `TIMES` times, or up to `LONGEST` bytes: a character, words, or a line.

    Args:
        seed: the input to start from.
        draw: where the chances come from; the result is a function of it.

    Returns:
        The bytes of the new input.
    """
    words: list[bytes] = WORD.findall(seed)
    at = draw.randrange(len(words) + 1)
    before, behind = b"".join(words[:at]), b"".join(words[at:])
    here = words[at] if at < len(words) else b"\n"
    match draw.randrange(5):
        case 0:
            piece = draw.choice(REPEATED)
        case 1:
            inside = draw.randrange(len(here))
            before, behind, piece = before + here[:inside], behind[inside:], here[inside : inside + 1]
        case 2:
            piece = here
        case 3:
            piece = here + b"".join(words[at + 1 : at + 1 + draw.choice((1, 2, 3))])
        case _:
            start, end = before.rfind(b"\n") + 1, behind.find(b"\n") + 1 or len(behind)
            piece = before[start:] + behind[:end]
            before, behind = before[:start], before[start:] + behind
    ending = draw.choice((b"", b"", b"x", b"0", b"!", b"\n"))
    times = min(TIMES, LONGEST // max(1, len(piece)))
    return before + piece * times + ending + behind


def _bytes(data: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    end = min(len(data), at + 1 + int(draw.expovariate(1 / 8)))
    match draw.randrange(8):
        case 0 if data:
            flipped = bytearray(data)
            flipped[at % len(data)] ^= 1 << draw.randrange(8)
            return bytes(flipped)
        case 1:
            return data[:at] + draw.choice(STRANGE) + data[at:]
        case 2:
            return data[:at] + data[end:]
        case 3:
            return data[:end] + data[at:end] * draw.choice((1, 2, 50)) + data[end:]
        case 4:
            return data[:at]
        case 5:
            length = draw.choice(BINARY_LENGTHS)
            number = draw.choice(
                (0, 1, -1, 1 << 7, 1 << 15, 1 << 31, (1 << 31) - 1, (1 << 63) - 1, draw.getrandbits(16))
            )
            packed = (number & ((1 << 8 * length) - 1)).to_bytes(length, draw.choice(("little", "big")))
            return data[:at] + packed + data[at + length :]
        case 6:
            other = draw.choice(others)
            start = draw.randrange(len(other) + 1)
            return data[:at] + other[start : start + 1 + int(draw.expovariate(1 / 40))] + data[end:]
        case _:
            return data[:at] + draw.choice(NUMBERS) + data[end:]


def _words(data: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    words: list[bytes] = WORD.findall(data)
    if not words:
        return draw.choice(STRANGE)
    at = draw.randrange(len(words))
    match draw.randrange(7):
        case 0:
            del words[at : at + 1 + draw.randrange(4)]
        case 1:
            words.insert(at, words[draw.randrange(len(words))])
        case 2:
            other = draw.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        case 3:
            words[at] = draw.choice(NUMBERS if words[at][:1].isdigit() else STRANGE)
        case 4:
            found = WORD.findall(draw.choice(others))
            words[at] = draw.choice(found) if found else b""
        case 5:
            numbers = [i for i, word in enumerate(words) if word[:1].isdigit()]
            words[draw.choice(numbers) if numbers else at] = draw.choice(NUMBERS)
        case _:
            lines = data.splitlines(keepends=True)
            line = draw.randrange(len(lines))
            lines.insert(draw.randrange(len(lines) + 1), lines.pop(line) if draw.random() < 0.5 else lines[line])
            return b"".join(lines)
    return b"".join(words)
