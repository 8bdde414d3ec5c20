"""The data of a training that is exported: what a reader's section says, as a program of PyTorch reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.nodes.source_support.values import dims_of
from cntkpy.networks.source.training import data
from cntkpy.networks.source.training.data import Stream
from cntkpy.readers.parameters import DeserializerParameters, OrderParameters, ReaderParameters

if TYPE_CHECKING:
    from cntkpy.cntk_config import ConfigParameters
    from cntkpy.networks.graph.network import Node
    from cntkpy.readers.contracts import MinibatchReader
    from cntkpy.readers.formats.image.transforms.chain import Chain

OTHERS = "a program of its own reads CNTKTextFormatReader, UCIFastReader and ImageReader; --data cntkpy reads all"


@dataclass
class Described:
    """The data of a training.

    Attributes:
        origin: where they come from; None: they are not written, see `reasons`.
        streams: by name of the network's input.
        sequences: whether there are sequences of several samples.
        shuffled: whether their order is another one in each epoch.
        cut: whether an epoch ends inside of a minibatch.
        length: the stream whose samples are the length of a sequence; empty: the longest one.
        reasons: what cannot be written, and why.
    """

    origin: data.Origin | None = None
    streams: dict[str, Stream] = field(default_factory=dict[str, Stream])
    sequences: bool = False
    shuffled: bool = False
    cut: bool = False
    length: str = ""
    reasons: list[str] = field(default_factory=list[str])


def open_reader(section: ConfigParameters, precision: str) -> MinibatchReader:
    """Open the reader of a section."""
    from cntkpy.readers.registry import create_reader

    return create_reader(section, precision)


def describe(section: ConfigParameters, inputs: Sequence[Node], reader: data.Reader | None) -> Described:
    """Describe the data of a reader's section.

    Args:
        section: of the reader.
        inputs: the inputs of the network.
        reader: a program that reads them with `cntkpy.readers`; None: it reads the files itself.

    Raises:
        UserError: the section is wrong, or the reader cannot be opened.
    """
    if reader is not None:
        return _of_reader(section, inputs, reader)
    parameters, kind, inner = ReaderParameters(section), "", section
    if parameters.deserializers:
        if len(parameters.deserializers) > 1:
            return Described(reasons=[f"several deserializers: {OTHERS}"])
        inner = parameters.deserializers[0]
        kind = str(DeserializerParameters(inner).type)
    else:
        kind = str(parameters.reader_type)
    if parameters.module is not None and str(parameters.module).lower().endswith(".py"):
        return Described(reasons=[f"a reader of the module {parameters.module}: {OTHERS}"])
    maker = _KINDS.get(kind.lower())
    if maker is None:
        return Described(reasons=[f"the reader {kind}: {OTHERS}"])
    described = maker(section, inner, inputs)
    if described.origin is not None:
        missing = [node.name for node in inputs if node.name not in described.streams]
        described.reasons += [f"the input '{name}': the reader has no stream of that name" for name in missing]
    return described


def _stream(node: Node, alias: str, size: int, sparse: bool = False) -> Stream:
    return Stream(node.name, alias, size, dims_of(node), sparse)


def _of_reader(section: ConfigParameters, inputs: Sequence[Node], reader: data.Reader) -> Described:
    opened = open_reader(section, reader.precision)
    names = {stream.name.lower(): stream.name for stream in opened.streams}
    opened.close()
    described = Described(reader, sequences=True)
    for node in inputs:
        name = names.get(node.name.lower())
        if name is None:
            described.reasons.append(f"the input '{node.name}': the reader has no stream of that name")
        else:
            described.streams[node.name] = _stream(node, name, math.prod(node.shape or (1,)))
    return described


# ---- CNTK's text format


def _of_text(section: ConfigParameters, inner: ConfigParameters, inputs: Sequence[Node]) -> Described:
    from cntkpy.readers.formats.text.options import TextFormatParameters

    p, order = TextFormatParameters(inner), OrderParameters(section)
    path = str(p.file)
    described = Described(shuffled=order.randomize)
    reasons = described.reasons
    if ReaderParameters(section).truncated:
        reasons.append("truncated: the states of a recurrence would go from one minibatch to the next")
    if Path(path).suffix in (".gz", ".zst", ".bz2", ".xz") or "://" in path:
        reasons.append(f"the file {path}: the program reads plain text; {OTHERS}")
    if p.max_errors:
        reasons.append(f"maxErrors: the program tolerates no malformed lines; {OTHERS}")
    formats = {stream.name.lower(): stream for stream in p.formats()}
    for node in inputs:
        stream = formats.get(node.name.lower())
        if stream is not None:
            described.streams[node.name] = _stream(node, stream.alias, stream.dim, stream.sparse)
            if stream.defines_mb_size:
                described.length = node.name
    if not reasons:
        described.sequences, by_line = _has_sequences(p, path)
        described.origin = data.Text(path, by_line)
    return described


def _has_sequences(p: Any, path: str) -> tuple[bool, bool]:
    """Return whether a file has sequences of several samples, and whether each line is a sequence."""
    deserializer = p.deserializer("float")
    lengths = deserializer.table.lengths
    by_line = bool(p.skip_sequence_ids)
    if not by_line:
        with Path(path).open("rb") as file:
            by_line = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"|"
    return bool((lengths > 1).any()), by_line


# ---- records


def _of_columns(section: ConfigParameters, inner: ConfigParameters, inputs: Sequence[Node]) -> Described:
    from cntkpy.readers.formats.uci.parameters import UCIReaderParameters

    p = UCIReaderParameters(section)
    columns, described = p.columns(), Described(shuffled=bool(p.randomize), cut=True)
    unwritten = {
        "minibatchMode=full": p.minibatch_mode.lower() == "full",
        "oneLinePerFile": p.one_line,
        "writerType: a cache is read instead of the text": p.writer_type is not None,
    }
    described.reasons += [f"{reason}; {OTHERS}" for reason, applies in unwritten.items() if applies]
    by_name = {node.name.lower(): node for node in inputs}
    features, labels = by_name.get(columns.features.lower()), by_name.get(columns.labels.lower())
    mapping, label_size = "", columns.label_dim
    if features is not None:
        described.streams[features.name] = _stream(features, columns.features, columns.dim)
    if labels is not None and columns.kind != "none":
        section_of_labels = p.labels()
        assert section_of_labels is not None
        if columns.kind == "category":
            mapping, label_size = str(section_of_labels.mapping), math.prod(labels.shape or (1,))
        described.streams[labels.name] = _stream(labels, columns.labels, label_size)
    if not described.reasons and features is not None:
        described.origin = data.Columns(
            p.path(),
            features.name,
            columns.first_feature,
            columns.dim,
            labels.name if labels is not None and columns.kind != "none" else "",
            columns.first_label,
            label_size,
            mapping,
            columns.delimiter,
            columns.decimal_point,
        )
    return described


# ---- pictures


def _of_map(section: ConfigParameters, inner: ConfigParameters, inputs: Sequence[Node]) -> Described:
    import numpy as np

    from cntkpy.readers.formats.image.options import ImageParameters
    from cntkpy.readers.formats.image.transforms.chain import make_chain

    p = ImageParameters(inner)
    name, stream, label = p.streams()
    chain = make_chain(stream.transforms or (), np.dtype(np.float32), 1 if p.grayscale else 3, until_mean=False)
    described = Described(shuffled=OrderParameters(section).randomize)
    if p.views:
        described.reasons.append(f"multiViewCrop: {OTHERS}")
    return _pictures(described, str(p.file), (name, label), inputs, bool(p.grayscale), chain)


def _of_image_reader(section: ConfigParameters, inner: ConfigParameters, inputs: Sequence[Node]) -> Described:
    import numpy as np

    from cntkpy.readers.formats.image.options import PLANES, ImageReaderParameters
    from cntkpy.readers.formats.image.transforms.chain import old_chain

    p = ImageReaderParameters(section)
    name, features, label = p.streams()
    gray = features.channels == 1 if features.grayscale is None else bool(features.grayscale)
    planes = features.layout in PLANES
    channels = 1 if gray else 3
    chain = old_chain(features.config, np.dtype(np.float32), channels, planes=planes, until_mean=False)
    described = Described(shuffled=bool(p.randomize))
    return _pictures(described, str(p.file), (name, label), inputs, gray, chain)


def _pictures(
    described: Described,
    path: str,
    names: tuple[str, tuple[str, int] | None],
    inputs: Sequence[Node],
    gray: bool,
    chain: Chain,
) -> Described:
    """Pictures that a map file lists."""
    by_name = {node.name.lower(): node for node in inputs}
    pictures = by_name.get(names[0].lower())
    label = names[1]
    classes = None if label is None else by_name.get(label[0].lower())
    lines: list[str] = []
    mean = ""
    for transform in chain.transforms:
        try:
            added, file = _statements(transform, gray)
        except UserError as problem:
            described.reasons.append(str(problem))
            continue
        lines += added
        mean = file or mean
    if not chain.channels_first:
        described.reasons.append(f"pictures without Transpose: one pixel follows the other; {OTHERS}")
    if pictures is not None:
        described.streams[pictures.name] = _stream(pictures, names[0], math.prod(pictures.shape or (1,)))
    if classes is not None and label is not None:
        described.streams[classes.name] = _stream(classes, label[0], label[1])
    if not described.reasons and pictures is not None:
        classes_name = classes.name if classes is not None else ""
        count = label[1] if label is not None else 0
        described.origin = data.Pictures(path, pictures.name, classes_name, count, gray, tuple(lines), mean)
    return described


def _statements(transform: Any, gray: bool) -> tuple[list[str], str]:
    """Return the statements of a transform, and the file of the mean picture that it subtracts.

    Raises:
        UserError: it draws random numbers, or has no code.
    """
    kind = type(transform).__name__
    if kind == "Crop":
        return _crop(transform), ""
    if kind == "Scale":
        return _scale(transform), ""
    if kind == "Mean":
        return ["picture = cv2.subtract(picture, mean_picture(), dtype=cv2.CV_32F)"], str(transform.path)
    if kind in ("Transpose", "Cast"):
        return [], ""
    if kind == "Color" and not any(
        any(r.distinct()) for r in (transform.brightness, transform.contrast, transform.saturation)
    ):
        return [], ""
    raise UserError("NotSupported", f"the transform {kind}: it draws random numbers; {OTHERS}")


def _crop(crop: Any) -> list[str]:
    """Return a part from the middle of the picture."""
    drawn = crop.kind != "center" or crop.flip or crop.aspect != (1.0, 1.0)
    drawn = drawn or (crop.jitter and (crop.side[0] != crop.side[1] or crop.area[0] != crop.area[1]))
    if drawn:
        raise UserError("NotSupported", f"Crop with random parts of pictures: PyTorch draws other numbers; {OTHERS}")
    if crop.size[0]:
        lines = [f"width, height = min(picture.shape[1], {crop.size[0]}), min(picture.shape[0], {crop.size[1]})"]
    elif crop.side[0]:
        side = f"min(picture.shape[:2]) * {crop.side[0]!r}"
        lines = [f"width = height = int({side if crop.truncate else f'{side} + 0.5'})"]
    elif crop.area[0]:
        area = f"picture.shape[0] * picture.shape[1] * {crop.area[0]!r}"
        lines = [f"width = height = int(math.sqrt({area}) + 0.5)"]
    else:
        return []
    return [
        *lines,
        "left, top = (picture.shape[1] - width) // 2, (picture.shape[0] - height) // 2",
        "picture = picture[top : top + height, left : left + width]",
    ]


def _scale(scale: Any) -> list[str]:
    """Return the picture in another size."""
    from cntkpy.readers.formats.image.transforms.scale import INTERPOLATIONS

    if scale.mode != "fill":
        raise UserError("NotSupported", f"scaleMode={scale.mode}: {OTHERS}")
    way = INTERPOLATIONS[scale.interpolation]
    option = "" if way == "INTER_LINEAR" else f", interpolation=cv2.{way}"
    return [f"picture = cv2.resize(picture, ({scale.width}, {scale.height}){option})"]


_KINDS = {
    "cntktextformatreader": _of_text,
    "cntktextformatdeserializer": _of_text,
    "ucifastreader": _of_columns,
    "imagereader": _of_image_reader,
    "imagedeserializer": _of_map,
}
"""By name of a reader or deserializer, in lower case."""
