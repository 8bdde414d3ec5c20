"""Writes binary model files of CNTK's first format, byte by byte from the description of the format, for tests."""

import struct

import numpy as np


def text(value: str) -> bytes:
    return value.encode("utf-16-le") + b"\0\0"


def u64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def i64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def u32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def i32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def f32(value: float) -> bytes:
    return struct.pack("<f", value)


def f64(value: float) -> bytes:
    return struct.pack("<d", value)


def boolean(*values: bool) -> bytes:
    return bytes(values)


def shape(*dims: int) -> bytes:
    return u32(len(dims), *dims)


def old_shape(width: int, height: int, channels: int) -> bytes:
    return u64(channels, width, height)


def booleans(*values: bool) -> bytes:
    return u64(len(values)) + boolean(*values)


def matrix(values: object, dtype: str = "<f4") -> bytes:
    """A dense matrix, rows and columns as written by a person."""
    array = np.atleast_2d(np.asarray(values, dtype))
    head = b"d" + text("BMAT") + u64(array.dtype.itemsize) + text("W") + i32(0) + u64(*array.shape)
    return head + array.tobytes(order="F") + text("EMAT")


class Writer:
    """Collects nodes, links and groups; `content` is the file."""

    def __init__(self, version: int = 14, precision: str = "float") -> None:
        self.version = version
        self.precision = precision
        self.dtype = {"half": "<f2", "float": "<f4", "double": "<f8"}[precision]
        self.nodes: list[tuple[str, str, bytes]] = []
        self.links: dict[str, list[str]] = {}
        self.groups: dict[str, list[str]] = {}

    def node(self, operation: str, name: str, body: bytes = b"", inputs: str = "") -> str:
        self.nodes.append((operation, name, body))
        self.links[name] = inputs.split()
        return name

    def input(self, name: str, *dims: int, operation: str = "InputValue") -> str:
        body = u64(0, 0) + shape(*dims)
        if self.version >= 8:
            body += u32(1) + text("")
        if self.version >= 10:
            body += f32(0)
        return self.node(operation, name, body)

    def parameter(self, name: str, values: object, *dims: int, rate: float = 1.0) -> str:
        array = np.atleast_2d(np.asarray(values, self.dtype))
        body = f32(rate) + shape(*(dims or array.shape)) if self.version >= 3 else boolean(rate > 0) + u64(*array.shape)
        return self.node("LearnableParameter", name, body + matrix(array, self.dtype))

    @property
    def content(self) -> bytes:
        out = [text("BCN")]
        if self.version > 1:
            out += [text("BVersion"), u64(self.version), text("EVersion")]
        out += [u64(len(self.nodes)), text("BNodeList")]
        for operation, name, body in self.nodes:
            out += [text(self.precision)] if self.version >= 7 else []
            out += [text(operation), text(name), body]
        out += [text("ENodeList"), text("BRelation")]
        for name, inputs in self.links.items():
            out += [text(name), u64(len(inputs)), *map(text, inputs)]
        out += [text("ERelation"), text("BRootNodes")]
        for group, names in self.groups.items():
            out += [text(f"B{group}"), u64(len(names)), *map(text, names), text(f"E{group}")]
            if group == "FeatureNodes" and "LabelNodes" not in self.groups:
                out.append(text("ELabelNodes"))
        out += [text("ERootNodes"), text("ECN")]
        return b"".join(out)
