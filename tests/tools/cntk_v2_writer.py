"""Writes model files of CNTK's later format, byte by byte from the description of the format, for tests."""

import struct
from typing import NamedTuple

import numpy as np

INFERRED, UNKNOWN, FREE = 2**64 - 1, 2**64 - 2, 2**64 - 3
INPUT, PARAMETER, CONSTANT, PLACEHOLDER = 0, 2, 3, 4


class Int(int):
    """A value of the type int, which may be negative; plain integers are of the type size."""


class Float(float):
    """A value of the type float; plain ones are of the type double."""


class Shape(tuple):
    """A shape."""


class Axis(NamedTuple):
    index: int
    name: str = ""
    ordered: bool = False


SEQUENCE = Axis(2147483647, "defaultDynamicAxis", True)
BATCH = Axis(2147483647, "defaultBatchAxis", False)
ALL_STATIC, END, ALL = Axis(2147483646), Axis(2147483644), Axis(2147483643)


def static(index):
    return Axis(index)


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def key(number, wire):
    return varint(number << 3 | wire)


def number(field, value):
    """A varint field; absent if 0."""
    return key(field, 0) + varint(value) if value else b""


def chunk(field, content):
    return key(field, 2) + varint(len(content)) + content


class Encoder:
    """How messages are written: `seed` shuffles fields and entries, `packed` and `junk` vary what readers must take."""

    def __init__(self, seed=None, packed=True, junk=False):
        self.random = None if seed is None else np.random.default_rng(seed)
        self.packed = packed
        self.junk = junk

    def join(self, parts):
        parts = [part for part in parts if part]
        if self.junk:
            parts += [key(99, 0) + varint(7), chunk(77, b"later"), key(55, 5) + b"abcd", key(44, 1) + b"abcdefgh"]
        if self.random is not None:
            self.random.shuffle(parts)
        return b"".join(parts)

    def repeated(self, field, values, wire, encode):
        if self.packed:
            return [chunk(field, b"".join(map(encode, values)))] if len(values) else []
        return [key(field, wire) + encode(value) for value in values]

    def shape(self, dims):
        return b"".join(self.repeated(1, dims, 0, varint))

    def axis(self, axis):
        name = chunk(2, axis.name.encode()) if axis.name else b""
        return self.join([number(1, axis.index), name, number(3, axis.ordered)])

    def array(self, values):
        double = values.dtype == np.float64
        form, wire, field = ("<d", 1, 5) if double else ("<f", 5, 4)
        flat = values.reshape(-1, order="F").tolist()
        data = b"".join(self.repeated(1, flat, wire, lambda v: struct.pack(form, v)))
        return self.join([number(1, 2 if double else 1), chunk(3, self.shape(values.shape)), chunk(field, data)])

    def value(self, value):
        """A DictionaryValue."""
        kind, content = self.typed(value)
        return self.join([number(1, 1), number(2, kind), content])

    def typed(self, value):
        if value is None:
            return 0, b""
        if isinstance(value, bool):
            return 1, number(3, value)
        if isinstance(value, Int):
            return 2, number(4, value)
        if isinstance(value, int):
            return 3, number(5, value)
        if isinstance(value, Float):
            return 4, key(6, 5) + struct.pack("<f", value) if value else b""
        if isinstance(value, float):
            return 5, key(7, 1) + struct.pack("<d", value) if value else b""
        if isinstance(value, str):
            return 6, chunk(8, value.encode()) if value else b""
        if isinstance(value, Shape):
            return 7, chunk(9, self.shape(value)) if value else b""
        if isinstance(value, Axis):
            return 8, chunk(10, self.axis(value))
        if isinstance(value, list):
            return 9, chunk(11, b"".join(chunk(1, self.value(v)) for v in value)) if value else b""
        if isinstance(value, dict):
            return 10, chunk(12, self.dictionary(value))
        return 11, chunk(13, self.array(value))

    def dictionary(self, table):
        entries = [chunk(2, self.join([chunk(1, k.encode()), chunk(2, self.value(v))])) for k, v in table.items()]
        return self.join([number(1, 1), *entries])

    def file(self, table):
        """The outermost dictionary: its version comes first, as in files."""
        entries = [chunk(2, self.join([chunk(1, k.encode()), chunk(2, self.value(v))])) for k, v in table.items()]
        if self.random is not None:
            self.random.shuffle(entries)
        return number(1, 1) + b"".join(entries)


class Writer:
    """Collects variables and functions; `content()` is the file."""

    def __init__(self, double=False):
        self.dtype = np.float64 if double else np.float32
        self.variables = []
        self.functions = []
        self.top = {}

    def variable(self, uid, kind, shape, name="", axes=(), **more):
        entry = {
            "version": 1,
            "type": "Variable",
            "uid": uid,
            "kind": kind,
            "data_type": 2 if self.dtype == np.float64 else 1,
            "dynamic_axis": list(axes),
            "is_sparse": more.pop("sparse", False),
            "needs_gradient": more.pop("needs_gradient", False),
            "shape": Shape(shape),
            **more,
        }
        if name:
            entry["name"] = name
        self.variables.append(entry)
        return uid

    def input(self, name, *dims, axes=(SEQUENCE, BATCH), **more):
        return self.variable(f"Input_{name}", INPUT, dims, name, axes, **more)

    def parameter(self, name, values, kind=PARAMETER, uid=None):
        values = np.asarray(values, self.dtype)
        uid = uid or f"Parameter_{name}"
        return self.variable(uid, kind, values.shape, name, value=values, needs_gradient=kind == PARAMETER)

    def constant(self, name, value):
        return self.parameter(name, np.asarray(value, self.dtype), CONSTANT)

    def placeholder(self, uid, *dims):
        return self.variable(uid, PLACEHOLDER, dims, axes=(SEQUENCE, BATCH))

    def function(self, op, uid, *inputs, name="", **attributes):
        entry = {
            "version": 8,
            "type": "PrimitiveFunction",
            "uid": uid,
            "op": op,
            "attributes": attributes,
            "inputs": list(inputs),
        }
        if name:
            entry["name"] = name
        self.functions.append(entry)
        return f"{uid}_Output_0"

    def block(self, uid, label, root, arguments, name=""):
        """A block; `arguments`: placeholder to actual variable."""
        output = self.function(57, uid, *arguments.values(), name=name)
        self.functions[-1].update(
            block_function_op_name=label,
            block_function_composite={"version": 1, "type": "CompositeFunction", "root": root, "uid": uid + "_inner"},
            block_function_composite_arguments_map_keys=list(arguments),
            block_function_composite_arguments_map_values=list(arguments.values()),
        )
        return output

    def content(self, root, encoder=None):
        encoder = encoder or Encoder()
        return encoder.file(
            {
                "version": 3,
                "type": "CompositeFunction",
                "uid": "Composite1",
                "root": root,
                "inputs": self.variables,
                "primitive_functions": self.functions,
                **self.top,
            }
        )
