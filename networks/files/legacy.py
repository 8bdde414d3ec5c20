"""Model files of the original (its own binary format, versions 1 to 15): read, never written.

The format is described in actions-and-training, Appendix A; primitives are in legacy_bytes, nodes in legacy_nodes.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cntk_config.base.diagnostics import UserError, suggestion
from networks import nodes
from networks.files.legacy_bytes import BadFile, NotSupported, Reader
from networks.files.legacy_nodes import Body, deviations_to_variances, kind_of, read_body
from networks.graph import shapes
from networks.graph.network import Network

log = logging.getLogger("cntkpy.networks")

MAGIC = b"B\0C\0N\0\0\0"
"""How such a file begins: the mark `BCN`."""
NEWEST = 15
SIZES = {"float": 4, "double": 8}


def is_legacy(path: str | Path) -> bool:
    """Whether a file is a model of the original."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def load_legacy(path: str | Path, precision: str | None = None) -> Network:
    """Read a model of the original.

    Args:
        path: the file.
        precision: "float" or "double" to convert to; by default that of the nodes in the file. Files before version 7
            do not say their precision; there the size of the elements of the first matrix decides.

    Raises:
        UserError: damaged, too new, or with a node that is not in the library, which is named.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as problem:
        raise UserError(f"cannot read the model {path}: {problem.strerror or problem}") from None
    return read_legacy(content, str(path), precision)


def read_legacy(content: bytes, name: str = "<model>", precision: str | None = None) -> Network:
    """As `load_legacy`, for the content of a file."""
    try:
        network = _read(Reader(content), precision)
    except NotSupported as problem:
        message, hint = (*problem.args, "")[:2]
        raise UserError(f"the model {name} cannot be used: {message}", hint=hint or None) from None
    except (BadFile, OverflowError, MemoryError) as problem:
        raise UserError(f"the model {name} is damaged: {problem}", hint="restore it from a copy") from None
    except UserError as problem:
        raise UserError(f"the model {name} cannot be used: {problem}", hint=problem.hint) from None
    try:
        network.validate()
        _shape_statistics(network)
    except UserError as problem:
        raise UserError(f"the model {name} cannot be used: {problem}", hint=problem.hint) from None
    return network


@dataclass
class _File:
    """What is known while a file is read."""

    version: int
    size: int | None
    """Bytes of an element, where the nodes do not say."""


def _read(r: Reader, precision: str | None) -> Network:
    r.marker("BCN")
    version = 1
    if r.try_marker("BVersion"):
        version = r.u64()
        r.marker("EVersion")
    if version > NEWEST:
        raise NotSupported(f"it has the format version {version}; versions up to {NEWEST} are known")
    file = _File(version, None if version >= 7 else _element_size(r.content))
    count = r.count(2 * 2)
    network = Network("float")
    sizes: set[int] = set()
    r.marker("BNodeList")
    for _ in range(count):
        sizes.add(_node(r, file, network))
    r.marker("ENodeList")
    stored = "double" if 8 in sizes else "float"
    _relations(r, network, count)
    deviations_to_variances([n for n in network.nodes.values() if n.operation == "BatchNormalization"], version)
    _groups(r, network)
    r.marker("ECN")
    wanted = Network(precision or stored)
    network.precision, network.dtype = wanted.precision, wanted.dtype
    for node in network.nodes.values():
        if node.value is not None:
            node.value = np.array(node.value, network.dtype)
    return network


def _element_size(content: bytes) -> int:
    """The size of the elements of the first matrix of an old file."""
    mark = "BMAT".encode("utf-16-le") + b"\0\0"
    start = content.find(mark)
    size = int.from_bytes(content[start + len(mark) : start + len(mark) + 8], "little") if start >= 0 else 4
    if size not in SIZES.values():
        raise BadFile(f"its elements have {size} bytes")
    return size


def _node(r: Reader, file: _File, network: Network) -> int:
    """Read one node; return the size of its elements."""
    size = file.size
    if size is None:
        at, precision = r.position, r.text()
        if precision not in SIZES:
            raise BadFile(f"'float' or 'double' is expected at {at}, not '{precision[:40]}'")
        size = SIZES[precision]
    operation, name = r.text(), r.text()
    kind = kind_of(operation)
    if kind is None:
        shown = operation[:80]
        known = nodes.find(operation)
        hint = known.unsupported if known is not None and known.unsupported else None
        hint = hint or suggestion(shown, [k.name for k in nodes.kinds() if not k.unsupported])
        raise NotSupported(f"the operation {shown} of the node '{name[:80]}' is not known here", hint or "")
    node = network.add(name, kind)
    read_body(Body(r, file.version, size, node, operation))
    return size


def _relations(r: Reader, network: Network, count: int) -> None:
    r.marker("BRelation")
    for _ in range(count):
        node = _found(network, r.text())
        node.inputs = [_found(network, r.text()) for _ in range(r.count(2))]
    r.marker("ERelation")


def _found(network: Network, name: str):
    if name not in network.nodes:
        raise BadFile(f"it speaks of a node '{name[:80]}', which it does not have")
    return network.nodes[name]


def _groups(r: Reader, network: Network) -> None:
    r.marker("BRootNodes")
    _group(r, network, "feature", "FeatureNodes")
    if not _group(r, network, "label", "LabelNodes"):
        r.try_marker("ELabelNodes")
    _group(r, network, "criterion", "CriterionNodes", "CriteriaNodes")
    _group(r, network, None, "NodesReqMultiSeqHandling")
    _group(r, network, "evaluation", "EvalNodes")
    _group(r, network, "output", "OutputNodes")
    if r.try_marker("BPairNodes"):
        if count := r.count(2):
            raise NotSupported(f"its group PairNodes has {count} nodes")
        r.marker("EPairNodes")
    r.marker("ERootNodes")


def _group(r: Reader, network: Network, group: str | None, *names: str) -> bool:
    """Read a group, if it is there."""
    if not any(r.try_marker(f"B{name}") for name in names):
        return False
    for _ in range(r.count(2)):
        node = _found(network, r.text())
        if group is not None:
            network.add_to_group(group, node)
    if not any(r.try_marker(f"E{name}") for name in names):
        r.marker(f"E{names[0]}")
    return True


def _shape_statistics(network: Network) -> None:
    """Values of pre-computed nodes are stored without shape: give them that of their input."""
    for node in network.nodes.values():
        if not node.kind.precompute or node.value is None or node.shape is None:
            continue
        if node.value.size != shapes.size(node.shape):
            raise UserError(
                f"{node.operation} '{node.name}' has {node.value.size} values, not {shapes.text(node.shape)}"
            )
        node.value = node.value.reshape(tuple(reversed(node.shape)))
