"""Describe files of speech: HTK features and scripts, master label files, archives of Kaldi."""

from __future__ import annotations

import re
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.readers.errors import DataError

from .texts import description, first_lines, quoted

MOST_VALUES = 8
_ALIGNMENT = re.compile(rb"\S+(?:[ \t]+[0-9]+)+[ \t]*\r?(?:\n|\Z)")


def describe_features(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a feature file of HTK: its kind, its first frames."""
    from cntkpy.readers.formats.htk.archive import FeatureFile

    file = FeatureFile(path)
    h = file.header
    frames = file.frames(0, min(samples, h.frames))
    kind = f"{h.kind}, {h.dim} values every {h.period / 10_000:g} ms"
    inner = f"features = [ scpFile = FILES.scp ; dim = {h.dim} ]"
    reader = f"deserializers = ([ type = HTKFeatureDeserializer ; input = [ {inner} ] ])"
    first = [{f"frame {number}": _row(row)} for number, row in enumerate(frames)]
    return description(reader, [("kind", kind)], first, h.frames, "frames")


def _row(values: np.ndarray) -> str:
    text = " ".join(f"{value:g}" for value in values[:MOST_VALUES].tolist())
    return text + (" ..." if len(values) > MOST_VALUES else "")


def describe_script(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a script: of HTK, or of Kaldi, whose lines begin with a key."""
    _, lines = first_lines(path, max(1, samples))
    if lines and re.match(r"\S+[ \t]+\S", lines[0]):
        return describe_kaldi(f"scp:{path}", form, samples)
    from cntkpy.readers.formats.htk.archive import FeatureFile
    from cntkpy.readers.formats.htk.script import read_script

    script = read_script([path])
    try:
        h = FeatureFile(script.files[int(script.file[0])]).header
        dim, kind = str(h.dim), f"{h.kind}, {h.dim} values every {h.period / 10_000:g} ms"
    except UserError as error:
        dim, kind = "DIM", f"the first file cannot be read: {error.message}"
    inner = f"features = [ scpFile = {quoted(path)} ; dim = {dim} ]"
    reader = f"deserializers = ([ type = HTKFeatureDeserializer ; input = [ {inner} ] ])"
    first = [{"line": line} for line in lines[:samples]]
    return description(reader, [("features", kind)], first, len(script), "utterances")


def describe_labels(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a master label file: its first entries."""
    count, lines = first_lines(path, 100_000)
    first: list[dict[str, str]] = []
    entries = 0
    for line in lines:
        if line.startswith('"'):
            entries += 1
            if len(first) < samples:
                first.append({"entry": line.strip()})
        elif entries == len(first) and first and line.strip() not in (".", "") and len(first[-1]) < 4:
            first[-1][f"line {len(first[-1])}"] = line.strip()
    inner = f"labels = [ mlfFile = {quoted(path)} ; labelMappingFile = STATES ; labelDim = DIM ]"
    reader = f"deserializers = ([ type = HTKMLFDeserializer ; input = [ {inner} ] ])"
    whole = count is not None and count <= len(lines)
    return description(reader, first=first, rows=entries if whole else None, unit="entries")


def describe_kaldi(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a table of Kaldi: features, or classes of frames."""
    from cntkpy.readers.convert.kaldi import from_kaldi, specifier

    place = specifier(path)
    if not _has_classes(path):
        source = from_kaldi([path], [])
        batch = next(source.batches)
        ends = np.cumsum(batch.parts["features"].lengths)
        rows = batch.parts["features"].rows
        first = [
            {
                "key": str(batch.keys[i]),
                "frames": str(batch.parts["features"].lengths[i]),
                "frame 0": _row(rows[end - batch.parts["features"].lengths[i]]),
            }
            for i, end in enumerate(ends[:samples].tolist())
        ]
        dim = source.streams[0].dim
        inner = f"features = [ rx = {quoted(place)} ; dim = {dim} ]"
        reader = f"deserializers = ([ type = KaldiFeatureDeserializer ; input = [ {inner} ] ])"
        return description(reader, [("features", f"{dim} values")], first, source.samples, "frames")
    from cntkpy.readers.formats.kaldi.labels import read_classes

    labels = read_classes(place)
    ends = np.cumsum(labels.lengths).tolist()
    classes = 1 + int(labels.classes.max(initial=0))
    first = [
        {"key": key, "classes": _row(labels.classes[end - length : end])}
        for key, end, length in zip(labels.keys[:samples], ends, labels.lengths.tolist(), strict=False)
    ]
    inner = f"labels = [ mlfFile = {quoted(place)} ; labelDim = {classes} ]"
    reader = f"deserializers = ([ type = KaldiLabelDeserializer ; input = [ {inner} ] ])"
    kind = f"classes of frames, {classes} or more"
    return description(reader, [("labels", kind)], first, len(labels.keys), "utterances")


def _has_classes(path: str) -> bool:
    """Return whether the first object of a table has whole numbers: classes of frames."""
    from cntkpy.readers.common.packed import open_data
    from cntkpy.readers.convert.kaldi import specifier
    from cntkpy.readers.formats.kaldi import object_kernels as k
    from cntkpy.readers.formats.kaldi.archive import open_table

    place = specifier(path)
    if place.startswith("scp"):
        try:
            open_table(place, k.MATRICES).require(np.arange(1))
        except DataError:
            return True
        return False
    try:
        with open_data(place.partition(":")[2]) as file:
            start = file.read(4096)
    except OSError:
        return False
    key = start.partition(b" ")[2]
    return key.startswith(b"\0B\x04") or _ALIGNMENT.match(start) is not None
