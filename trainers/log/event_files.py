"""Event files of TensorBoard: records of messages in the wire format of Protocol Buffers.

A record is its length (8 bytes), a masked CRC-32C of these, the message, and a masked CRC-32C of the message
(https://www.tensorflow.org/tutorials/load_data/tfrecord). The fields of the messages `Event`, `Summary`, `GraphDef` and
`NodeDef` have the numbers of TensorFlow's public .proto files.
"""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from cntk_config import UserError
from cntk_config.base.writing import not_written, open_in_place
from networks.graph.network import Network

_MASK = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78
_UNUSUAL = re.compile(r"[^A-Za-z0-9./_-]")


@cache
def _table() -> tuple[int, ...]:
    def entry(value: int) -> int:
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        return value

    return tuple(map(entry, range(256)))


def masked_crc(data: bytes) -> int:
    """The CRC-32C (Castagnoli) of some bytes, rotated by 15 bits and with a constant added."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF


def record(message: bytes) -> bytes:
    """A message as it stands in the file."""
    length = struct.pack("<Q", len(message))
    return b"".join((length, struct.pack("<I", masked_crc(length)), message, struct.pack("<I", masked_crc(message))))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _field(number: int, value: int | float | str | bytes) -> bytes:
    """A field: of an integer a varint, of a float 8 bytes, of others their bytes with the length before."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode("utf-8") if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _single(number: int, value: float) -> bytes:
    return _varint(number << 3 | 5) + struct.pack("<f", value)


def version_event(seconds: float) -> bytes:
    """The first message of a file."""
    return _field(1, seconds) + _field(3, "brain.Event:2")


def scalar_event(seconds: float, step: int, tag: str, value: float) -> bytes:
    """A number called `tag` at a step.

    Args:
        seconds: since 1970.
        step: its place along the axis of steps.
        tag: what TensorBoard shows it under.
        value: the number, which is kept in single precision.
    """
    return _field(1, seconds) + _field(2, step) + _field(5, _field(1, _field(1, tag) + _single(2, value)))


def graph_event(seconds: float, network: Network) -> bytes:
    """The nodes of a network with their operations, inputs and shapes; a point in a name makes a group of it."""
    names = _unique(network.nodes)
    nodes: list[bytes] = []
    for node in network.nodes.values():
        inputs = (_field(3, names[source.name]) for source in node.inputs if source is not None)
        shape = b"".join(_field(2, _field(1, int(size))) for size in reversed(node.shape or ()))
        shapes = _field(1, "_output_shapes") + _field(2, _field(1, _field(7, shape)))
        said = (_field(1, names[node.name]), _field(2, node.operation), *inputs, _field(5, shapes))
        nodes.append(_field(1, b"".join(said)))
    graph = b"".join(nodes) + _field(4, _field(1, 1))
    return _field(1, seconds) + _field(4, graph)


def _unique(names: Iterable[str]) -> dict[str, str]:
    """A name that TensorBoard takes for each of some names, no two alike."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = _UNUSUAL.sub("_", name).replace(".", "/").lstrip("/_-") or "node"
        number, chosen = 0, plain
        while chosen in taken:
            number += 1
            chosen = f"{plain}_{number}"
        taken.add(chosen)
        found[name] = chosen
    return found


class EventFile:
    """A new event file.

    Args:
        folder: where; it is made if it is missing.

    Raises:
        UserError: the file cannot be written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        seconds = time.time()
        self.path = Path(folder) / f"events.out.tfevents.{seconds:.6f}.{os.getpid()}"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(open_in_place(self.path, append=True), "ab")  # noqa: PTH123, SIM115 - a descriptor
        except OSError as error:
            raise UserError("CannotWrite", not_written(error, self.path)) from None
        self._write(version_event(seconds))

    def _write(self, message: bytes) -> None:
        if not self._file.closed:
            self._file.write(record(message))

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Add a number at a step."""
        self._write(scalar_event(time.time(), step, tag, value))

    def graph(self, network: Network) -> None:
        """Add a network."""
        self._write(graph_event(time.time(), network))

    def flush(self) -> None:
        """Write everything to the file."""
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        """Write everything and close the file; nothing is added after that."""
        self._file.close()
