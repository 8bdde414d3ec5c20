"""Descriptions of deserializers: dictionaries with what a configuration section would say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, cast

from cntkpy.cntk_config.base.narrowing import is_mapping, is_several
from cntkpy.cntk_config.parameters import ConfigParameters, parse
from cntkpy.readers.common.arguments import whole_number
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.user.record import Record

Config = dict[str, Any]


def CTFDeserializer(filename: str, streams: Mapping[str, Any]) -> Config:
    """Return a file in CNTK text format.

    Args:
        streams: StreamDefs(name=StreamDef(field=..., shape=..., is_sparse=...)).

    More parameters of the section can be set in the result: `found["chunkSizeInBytes"] = 1 << 20`.
    """
    inputs: Config = {}
    for key, stream in _streams("CTFDeserializer", streams).items():
        if stream.stream_alias is None:
            raise ArgumentError(
                f"CTFDeserializer: stream name for key {key} must be specified", "write StreamDef(field=..., shape=...)"
            )
        inputs[key] = {
            "dim": _dim("CTFDeserializer", key, stream),
            "format": "sparse" if stream.is_sparse else "dense",
            "definesMBSize": bool(stream.get("defines_mb_size", False)),
            "alias": stream.stream_alias,
        }
    return {"type": "CNTKTextFormatDeserializer", "file": str(filename), "input": inputs}


def CBFDeserializer(filename: str, streams: Mapping[str, Any] | None = None) -> Config:
    """Return a file in CNTK binary format. streams: only renames what is in the file."""
    inputs = {key: {"alias": stream.stream_alias} for key, stream in _streams("CBFDeserializer", streams or {}).items()}
    return {"type": "CNTKBinaryFormatDeserializer", "file": str(filename)} | ({"input": inputs} if inputs else {})


def ParquetDeserializer(
    filename: Any, streams: Mapping[str, Any], key_column: str | None = None, filter: str | None = None
) -> Config:
    """Columns of a Parquet file.

    Args:
        filename: the file, or a list of files with the same columns; a folder, or a pattern with `*`.
        streams: StreamDefs(name=StreamDef(field=..., shape=..., is_sparse=...)); field is the name of a column, or a
            list of columns of numbers that make one sample. With transforms=[...], which may be empty, the column has
            pictures as bytes; Transpose is appended.
        key_column: the column with the keys of sequences; None: they are the numbers of the rows.
        filter: what rows have to fulfil, for instance "label < 5 and split == 'train'".
    """
    return _table("ParquetDeserializer", filename, streams, {"keyColumn": key_column, "filter": filter})


def ArrowDeserializer(
    filename: Any, streams: Mapping[str, Any], key_column: str | None = None, filter: str | None = None
) -> Config:
    """Columns of a file in Arrow's file format; arguments as for `ParquetDeserializer`."""
    return _table("ArrowDeserializer", filename, streams, {"keyColumn": key_column, "filter": filter})


def CsvDeserializer(
    filename: Any, streams: Mapping[str, Any], key_column: str | None = None, filter: str | None = None
) -> Config:
    """Columns of a CSV file, which may be compressed; arguments as for `ParquetDeserializer`.

    A file without a header has columns with the names "1", "2", ... Each row is parsed once when the source is made.
    """
    return _table("CsvDeserializer", filename, streams, {"keyColumn": key_column, "filter": filter})


def _table(kind: str, filename: Any, streams: Mapping[str, Any], more: Mapping[str, str | None]) -> Config:
    inputs: Config = {}
    for key, stream in _streams(kind, streams).items():
        if stream.get("transforms") is not None:
            inputs[key] = {"transforms": [*stream.transforms, {"type": "Transpose"}]}
        else:
            inputs[key] = {
                "dim": _dim(kind, key, stream),
                "format": "sparse" if stream.is_sparse else "dense",
                "definesMBSize": bool(stream.get("defines_mb_size", False)),
            }
        if (field := stream.stream_alias) is not None:
            inputs[key] |= {"columns": list(map(str, field))} if is_several(field) else {"alias": str(field)}
    files = list(map(str, filename)) if is_several(filename) else str(filename)
    config: Config = {"type": kind, "file": files, "input": inputs}
    return config | {name: value for name, value in more.items() if value is not None}


def TarDeserializer(filename: Any, streams: Mapping[str, Any]) -> Config:
    """Members of tar archives (WebDataset); those with the same name but for the ending are a sample.

    Args:
        filename: the archive, or a list of archives.
        streams: StreamDefs(x=StreamDef(field="jpg", transforms=[...]), y=StreamDef(field="cls", shape=10,
            is_sparse=True)); field is the ending of the names of members, or a list of endings. Transpose is appended
            to transforms.
    """
    inputs: Config = {}
    for key, stream in _streams("TarDeserializer", streams).items():
        if (transforms := stream.get("transforms")) is not None:
            inputs[key] = {"transforms": [*transforms, {"type": "Transpose"}]}
        else:
            inputs[key] = {
                "dim": _dim("TarDeserializer", key, stream),
                "format": "sparse" if stream.is_sparse else "dense",
                "definesMBSize": bool(stream.get("defines_mb_size", False)),
            }
        if (field := stream.stream_alias) is not None:
            inputs[key]["member"] = list(map(str, field)) if is_several(field) else str(field)
    files = list(map(str, filename)) if is_several(filename) else str(filename)
    return {"type": "TarDeserializer", "file": files, "input": inputs}


def ImageDeserializer(filename: str, streams: Mapping[str, Any]) -> Config:
    """Pictures that a map file lists.

    Args:
        streams: StreamDefs(x=StreamDef(field="image", transforms=[...]), y=StreamDef(field="label", shape=classes));
            labels may be left out. Transforms are made by the functions of `cntkpy.readers.transforms`; Transpose is
            appended.
    """
    return _images("ImageDeserializer", filename, streams)


def Base64ImageDeserializer(filename: str, streams: Mapping[str, Any]) -> Config:
    """Pictures as base64 in a text file; `streams` as for `ImageDeserializer`."""
    return _images("Base64ImageDeserializer", filename, streams)


def _images(kind: str, filename: str, streams: Mapping[str, Any]) -> Config:
    inputs: Config = {}
    for key, stream in _streams(kind, streams).items():
        if stream.stream_alias == "image":
            inputs[key] = {"transforms": [*stream.get("transforms", ()), {"type": "Transpose"}]}
        elif stream.stream_alias == "label":
            inputs[key] = {"labelDim": _dim(kind, key, stream)}
        else:
            raise ArgumentError(f"{kind}: invalid field name '{stream.stream_alias}', allowed are 'image' and 'label'")
    if not any("transforms" in input_variable for input_variable in inputs.values()):
        raise ArgumentError(f"{kind}: stream name ('image' or 'label') must be specified", 'StreamDef(field="image")')
    return {"type": kind, "file": str(filename), "input": inputs}


def HTKFeatureDeserializer(streams: Mapping[str, Any]) -> list[Config]:
    """Features in HTK files: a deserializer for each stream.

    Args:
        streams: StreamDefs(x=StreamDef(scp="train.scp", shape=33, context=(5, 5))). `shape` are the values of a frame
            in the file; `context` frames before and after it, none by default. `broadcast` repeats the only frame of an
            utterance. Utterances of more than `max_sequence_length` frames are left out.
    """
    return _features("HTKFeatureDeserializer", streams, lambda scp: {"scpFile": scp})


def KaldiFeatureDeserializer(streams: Mapping[str, Any]) -> list[Config]:
    """Features in Kaldi archives: a deserializer for each stream.

    Args:
        streams: StreamDefs(x=StreamDef(scp="feats.scp", shape=13, context=(5, 5))), with the other arguments of
            `HTKFeatureDeserializer`; `scp` may also be Kaldi's way to say it, "ark:feats.ark".
    """
    return _features("KaldiFeatureDeserializer", streams, lambda scp: {"rx": _specifier(scp)})


def KaldiLabelDeserializer(label_mapping_file: str | None, streams: Mapping[str, Any]) -> Config:
    """Classes of frames in Kaldi alignments or posteriors, for the features that come first.

    Args:
        label_mapping_file: the numbers in the archive, one a line, by class; None if they are the classes.
        streams: one, StreamDefs(y=StreamDef(mlf="ark:ali.ark", shape=132)).
    """
    kind = "KaldiLabelDeserializer"
    key, stream = _only_stream(kind, streams)
    files = _mlf(kind, key, stream)
    if len(files) > 1:
        raise ArgumentError(f"{kind}: stream {key} has {len(files)} archives", "join them: cat a.ark b.ark > c.ark")
    inside: Config = {"mlfFile": files[0], "labelDim": _dim(kind, key, stream)}
    if label_mapping_file is not None:
        inside["labelMappingFile"] = str(label_mapping_file)
    return {"type": kind, "input": {key: inside}}


def _specifier(scp: Any) -> str:
    text = str(scp)
    return text if text.lower().startswith(("ark:", "ark,", "scp:", "scp,")) else f"scp:{text}"


def _features(kind: str, streams: Mapping[str, Any], source: Callable[[Any], Config]) -> list[Config]:
    configs: list[Config] = []
    for key, stream in _streams(kind, streams).items():
        _no_field(kind, key, stream)
        if stream.get("scp") is None:
            raise ArgumentError(f"{kind}: no scp file for stream {key}", 'write StreamDef(scp="train.scp", shape=...)')
        context = stream.get("context", (0, 0))
        if not is_several(context) or len(context) != 2:
            raise ArgumentError(
                f"{kind}: the context of stream {key} is (frames before, frames after), not {context!r}"
            )
        left, right = context
        inside = {
            **source(stream.scp),
            "dim": _dim(kind, key, stream),
            "contextWindow": f"{left}:{right}",
            "expandToUtterance": bool(stream.get("broadcast", False)),
            "definesMBSize": bool(stream.get("defines_mb_size", False)),
            "maxSequenceSize": whole_number(stream.get("max_sequence_length", 65535), "max_sequence_length", 1),
        }
        configs.append({"type": kind, "input": {key: inside}})
    if not configs:
        raise ArgumentError(f"{kind}: no feature streams found")
    return configs


def HTKMLFDeserializer(
    label_mapping_file: str | None, streams: Mapping[str, Any], phoneBoundaries: bool = False
) -> Config:
    """Classes of frames in MLF label files, for the features that come first.

    Args:
        label_mapping_file: names of states, one per line; None if the label files have the numbers of classes.
        streams: one, StreamDefs(y=StreamDef(mlf="train.mlf", shape=132)); several files are a list.
        phoneBoundaries: the first frame of a range has a 2 in place of the 1.
    """
    kind = "HTKMLFDeserializer"
    key, stream = _only_stream(kind, streams)
    mlf = _mlf(kind, key, stream)
    inside: Config = {"mlfFileList" if len(mlf) > 1 else "mlfFile": mlf if len(mlf) > 1 else mlf[0]}
    inside |= {"labelDim": _dim(kind, key, stream), "phoneBoundaries": bool(phoneBoundaries)}
    if label_mapping_file is not None:
        inside["labelMappingFile"] = str(label_mapping_file)
    return {"type": kind, "input": {key: inside}}


def HTKMLFBinaryDeserializer(streams: Mapping[str, Any]) -> Config:
    """Refused by `MinibatchSource`, which says what to use instead: the format is not public."""
    kind = "HTKMLFBinaryDeserializer"
    key, stream = _only_stream(kind, streams)
    return {"type": kind, "input": {key: {"mlfFile": _mlf(kind, key, stream), "labelDim": _dim(kind, key, stream)}}}


def LatticeDeserializer(lattice_index_file: str, streams: Mapping[str, Any]) -> Config:
    """Refused by `MinibatchSource`: there is no sequence training."""
    key, _ = _only_stream("LatticeDeserializer", streams)
    return {"type": "LatticeDeserializer", "input": {key: {"latticeIndexFile": str(lattice_index_file)}}}


def _streams(kind: str, streams: Any) -> Mapping[str, Any]:
    if not is_mapping(streams) or not all(isinstance(stream, Record) for stream in streams.values()):
        raise ArgumentError(
            f"{kind}: streams must be StreamDefs(name=StreamDef(...)), not {type(streams).__name__}",
            "every stream is a StreamDef(...) under its name",
        )
    names: dict[str, str] = {}
    for name in streams:
        other_name = names.setdefault(name.lower(), name)
        if other_name != name:
            raise ArgumentError(
                f"{kind}: the streams {other_name} and {name} differ in letter case only", "rename one of them"
            )
    return streams


def _only_stream(kind: str, streams: Any) -> tuple[str, Any]:
    result = _streams(kind, streams)
    if len(result) != 1:
        raise ArgumentError(f"{kind}: it has one stream, not {len(result)} ({', '.join(result) or 'none'})")
    ((key, stream),) = result.items()
    _no_field(kind, key, stream)
    return key, stream


def _no_field(kind: str, key: str, stream: Any) -> None:
    if stream.stream_alias is not None:
        raise ArgumentError(f"{kind}: stream {key} has no field, its file has nothing else", "leave field out")


def _mlf(kind: str, key: str, stream: Any) -> list[str]:
    value: Any = stream.get("mlf") or ()
    files = list(map(str, [cast("Any", value)] if isinstance(value, str | PathLike) else value))
    if not files:
        raise ArgumentError(f"{kind}: no mlf file for stream {key}", 'write StreamDef(mlf="train.mlf", shape=...)')
    return files


def _dim(kind: str, key: str, stream: Any) -> int:
    if "dim" not in stream:
        raise ArgumentError(f"{kind}: the dimension of stream {key} must be specified", "write StreamDef(shape=...)")
    return whole_number(stream.dim, f"{kind}: shape of stream {key}", 1)


def to_section(config: Mapping[str, Any]) -> ConfigParameters:
    """Return a dictionary as a configuration section."""
    section = parse("", "<python>")
    for name, value in config.items():
        nested = value if is_several(value) else [value]
        if any(isinstance(statistics, Mapping) for statistics in nested):
            section.insert(f"{name}={_text(value)}")
        else:
            section.insert(name, _text(value))
    return section


def _text(value: Any) -> str:
    if is_mapping(value):
        return "[" + ";".join(f"{name}={_quoted(_text(value))}" for name, value in value.items()) + "]"
    if is_several(value):
        return "(" + ":".join(_quoted(_text(element)) for element in value) + ")"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _quoted(text: str) -> str:
    plain = text.startswith(("[", "(")) or '"' in text or text.isalnum()
    return text if plain else f'"{text}"'
