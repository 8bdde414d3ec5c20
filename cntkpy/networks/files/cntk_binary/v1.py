"""CNTK's first binary format, versions 1 to 30: bytes to records.

The format: docs/specification/actions-and-training.md A.2 and docs/specification/model-files.md 2.
"""

from __future__ import annotations

import dataclasses
import difflib

import numpy as np

from cntkpy.networks.files.cntk_binary.operations import ALIASES, BODIES
from cntkpy.networks.nodes.file_support.bodies import PRECISIONS, SHAPE, VALUE, Body
from cntkpy.networks.nodes.file_support.primitives import Reader
from cntkpy.networks.nodes.file_support.records import HALF_NOTE, BadFile, NotSupported, Record, Records

MAGIC = b"B\0C\0N\0\0\0"
"""Magic bytes of such a file: the mark `BCN`."""
NEWEST = 30
SHARED_PADDING = 16
"""Since this version automatic padding shares what a step leaves over between both ends."""


def parse_v1(content: bytes) -> Records:
    """Read a whole file.

    Args:
        content: the bytes of the file.

    Raises:
        BadFile: damaged, with the offset.
        NotSupported: newer than version 30, or with an operation that CNTK does not have.
    """
    r = Reader(content)
    r.marker("BCN")
    version = 1
    if r.try_marker("BVersion"):
        version = r.u64()
        r.marker("EVersion")
    if version > NEWEST:
        raise NotSupported(f"it has the format version {version}; versions up to {NEWEST} are known")
    size = None if version >= 7 else _element_size(content)
    count = r.count(2 * 2)
    records = Records(f"CNTK's binary format, version {version}", "float", version >= SHARED_PADDING, exact_axes=False)
    sizes: set[int] = set()
    names: dict[str, str] = {}
    r.marker("BNodeList")
    for _ in range(count):
        record, body = _node(r, version, size)
        if record.name.lower() in names:
            raise BadFile(f"two nodes have the name '{record.name[:80]}' (capital letters do not count)", record.at)
        names[record.name.lower()] = record.name
        records.records[record.name] = record
        sizes.add(body)
    r.marker("ENodeList")
    records.precision = "double" if 8 in sizes else "float"
    if PRECISIONS["half"] in sizes:
        records.notes.append(HALF_NOTE)
    _relations(r, records.records, names, count)
    if version < 13:
        _deviations_to_variances(records.records)
    _groups(r, records.groups, names)
    r.marker("ECN")
    if r.left:
        raise BadFile(f"{r.left} bytes follow the end of the model", r.position)
    return records


def _element_size(content: bytes) -> int:
    """Return the size of the elements of the first matrix of a file before version 7, where nodes do not say it."""
    mark = "BMAT".encode("utf-16-le") + b"\0\0"
    start = content.find(mark)
    size = int.from_bytes(content[start + len(mark) : start + len(mark) + 8], "little") if start >= 0 else 4
    if size not in PRECISIONS.values():
        raise BadFile(f"its elements have {size} bytes", start + len(mark))
    return size


def _node(r: Reader, version: int, size: int | None) -> tuple[Record, int]:
    """Return one node without its inputs, and the size of its elements."""
    position = r.position
    if size is None:
        precision = r.text()
        if precision not in PRECISIONS:
            raise BadFile(f"'float', 'double' or 'half' is expected, not '{precision[:40]}'", position)
        size = PRECISIONS[precision]
    written, name = r.text(), r.text()
    operation = ALIASES.get(written, written)
    if operation not in BODIES:
        near = difflib.get_close_matches(written[:80], [*BODIES, *ALIASES], 1)
        raise NotSupported(
            f"the operation {written[:80]} of the node '{name[:80]}' (byte {position}) is not known",
            f"the nearest known one is {near[0]}" if near else "",
        )
    attributes = BODIES[operation](Body(r, version, size, written, name))
    shape, value = attributes.pop(SHAPE, None), attributes.pop(VALUE, None)
    return Record(name, operation, (), attributes, shape, value, position), size


def _relations(r: Reader, records: dict[str, Record], names: dict[str, str], count: int) -> None:
    r.marker("BRelation")
    for _ in range(count):
        name = _known(r, names)
        inputs = tuple(_known(r, names) for _ in range(r.count(2)))
        records[name] = dataclasses.replace(records[name], inputs=inputs)
    r.marker("ERelation")


def _known(r: Reader, names: dict[str, str]) -> str:
    position, name = r.position, r.text()
    if name.lower() not in names:
        raise BadFile(f"it speaks of a node '{name[:80]}', which it does not have", position)
    return names[name.lower()]


def _groups(r: Reader, groups: dict[str, list[str]], names: dict[str, str]) -> None:
    r.marker("BRootNodes")
    _group(r, groups, names, "feature", "FeatureNodes")
    if not _group(r, groups, names, "label", "LabelNodes"):
        r.try_marker("ELabelNodes")
    _group(r, groups, names, "criterion", "CriterionNodes", "CriteriaNodes")
    _group(r, {}, names, "", "NodesReqMultiSeqHandling")
    _group(r, groups, names, "evaluation", "EvalNodes")
    _group(r, groups, names, "output", "OutputNodes")
    if r.try_marker("BPairNodes"):
        if count := r.count(2):
            raise NotSupported(f"its group PairNodes has {count} nodes")
        r.marker("EPairNodes")
    r.marker("ERootNodes")


def _group(r: Reader, groups: dict[str, list[str]], names: dict[str, str], group: str, *marks: str) -> bool:
    """Read a group, if it is there."""
    if not any(r.try_marker(f"B{mark}") for mark in marks):
        return False
    groups[group] = [_known(r, names) for _ in range(r.count(2))]
    if not any(r.try_marker(f"E{mark}") for mark in marks):
        r.marker(f"E{marks[0]}")
    return True


def _deviations_to_variances(records: dict[str, Record]) -> None:
    """Before version 13 the running statistics hold 1 / standard deviation: make them variances, each once."""
    done: set[str] = set()
    for node in [record for record in records.values() if record.operation == "BatchNormalization"]:
        operand = records[node.inputs[4]] if len(node.inputs) > 4 else None
        if operand is None or operand.value is None or operand.name in done:
            continue
        done.add(operand.name)
        epsilon = float(node.attributes.get("epsilon", 1e-5))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            variance = 1 / np.square(operand.value.astype(np.float64)) - epsilon
            variance = np.where(np.isfinite(variance), np.maximum(variance, 0), 0).astype(operand.value.dtype)
        records[operand.name] = dataclasses.replace(operand, value=variance)
