"""Event files of TensorBoard, read by the messages of tensorboardX."""

import struct
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.graph_pb2 import GraphDef


def events(path: Path) -> list[Any]:
    """The messages of a file. A record is a length of 8 bytes, a sum of 4, the message, and a sum of 4."""
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(Event.FromString(data[12 : 12 + length]))
        data = data[16 + length :]
    return found


def scalars(path: Path) -> list[tuple[str, float, int]]:
    """Tag, value and step of each number."""
    return [(one.tag, one.simple_value, event.step) for event in events(path) for one in event.summary.value]


def graph(path: Path) -> dict[str, tuple[str, list[str], list[int]]]:
    """Operation, inputs and shape of each node of the graph."""
    (found,) = [GraphDef.FromString(event.graph_def) for event in events(path) if event.graph_def]
    return {
        node.name: (node.op, list(node.input), [axis.size for axis in node.attr["_output_shapes"].list.shape[0].dim])
        for node in found.node
    }
