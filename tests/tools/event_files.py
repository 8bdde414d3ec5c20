"""Event files of TensorBoard, read by a parser that shares nothing with what writes them."""

import struct
from pathlib import Path
from typing import Any


def crc32c(data: bytes) -> int:
    """CRC-32C, bit by bit."""
    found = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            last = (found ^ (byte >> bit)) & 1
            found >>= 1
            if last:
                found ^= 0x82F63B78
    return found ^ 0xFFFFFFFF


def _is_sum(masked: bytes, data: bytes) -> bool:
    rotated = (struct.unpack("<I", masked)[0] - 0xA282EAD8) % 2**32
    return ((rotated << 15) | (rotated >> 17)) % 2**32 == crc32c(data)


def messages(path: Path) -> list[dict[int, list[Any]]]:
    """The events of a file, whose sums are checked."""
    data, found = path.read_bytes(), []
    while data:
        head, rest = data[:8], data[12:]
        (length,) = struct.unpack("<Q", head)
        assert _is_sum(data[8:12], head) and _is_sum(rest[length : length + 4], rest[:length])
        found.append(fields(rest[:length]))
        data = rest[length + 4 :]
    return found


def fields(message: bytes) -> dict[int, list[Any]]:
    """The fields of a message by their numbers."""
    found: dict[int, list[Any]] = {}

    def varint() -> int:
        nonlocal message
        value = 0
        for place in range(10):
            byte, message = message[0], message[1:]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value
        raise AssertionError("a number without an end")

    while message:
        key = varint()
        if key % 8 == 0:
            value: Any = varint()
        else:
            size = {1: 8, 5: 4}.get(key % 8) or varint()
            value, message = message[:size], message[size:]
            value = struct.unpack({1: "<d", 5: "<f"}[key % 8], value)[0] if key % 8 in (1, 5) else value
        found.setdefault(key // 8, []).append(value)
    return found


def scalars(path: Path) -> list[tuple[str, float, int]]:
    """Tag, value and step of each number, after the message of the version."""
    first, *others = messages(path)
    assert first[3] == [b"brain.Event:2"] and 1.6e9 < first[1][0] < 1e11
    found = []
    for event in others:
        for summary in event.get(5, []):
            for value in map(fields, fields(summary)[1]):
                found.append((value[1][0].decode(), value[2][0], event[2][0]))
    return found


def graph(path: Path) -> dict[str, tuple[str, list[str], list[int]]]:
    """Operation, inputs and shape of each node of the graph."""
    (text,) = [one for event in messages(path) for one in event.get(4, [])]
    found = {}
    for node in map(fields, fields(text)[1]):
        (attribute,) = map(fields, node[5])
        assert attribute[1] == [b"_output_shapes"]
        shape = fields(fields(fields(attribute[2][0])[1][0])[7][0])
        sizes = [fields(one).get(1, [0])[0] for one in shape.get(2, [])]
        found[node[1][0].decode()] = (node[2][0].decode(), [one.decode() for one in node.get(3, [])], sizes)
    return found
