"""Descriptions of deserializers: dictionaries with what a configuration section would say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cntk_config.parameters import ConfigParameters, parse

Config = dict[str, Any]


def CTFDeserializer(filename: str, streams: Mapping[str, Any]) -> Config:
    """A file in CNTK text format.

    **Arguments:**

    - `streams`: StreamDefs(name=StreamDef(field=..., shape=..., is_sparse=...)).

    More parameters of the section can be set in the result: `found["chunkSizeInBytes"] = 1 << 20`.
    """
    inputs: Config = {}
    for key, stream in streams.items():
        if stream.stream_alias is None:
            raise ValueError(f"CTFDeserializer: stream name for key {key} must be specified")
        inputs[key] = {
            "dim": stream.dim,
            "format": "sparse" if stream.is_sparse else "dense",
            "definesMBSize": bool(stream.get("defines_mb_size", False)),
            "alias": stream.stream_alias,
        }
    return {"type": "CNTKTextFormatDeserializer", "file": str(filename), "input": inputs}


def CBFDeserializer(filename: str, streams: Mapping[str, Any] | None = None) -> Config:
    """A file in CNTK binary format. streams: only renames what is in the file."""
    inputs = {key: {"alias": stream.stream_alias} for key, stream in (streams or {}).items()}
    return {"type": "CNTKBinaryFormatDeserializer", "file": str(filename)} | ({"input": inputs} if inputs else {})


def ImageDeserializer(filename: str, streams: Mapping[str, Any]) -> Config:
    """Pictures that a map file lists.

    **Arguments:**

    - `streams`: StreamDefs(x=StreamDef(field="image", transforms=[...]), y=StreamDef(field="label", shape=classes));
      labels may be left out. Transforms are made by the functions of `readers.transforms`; Transpose is appended.
    """
    return _images("ImageDeserializer", filename, streams)


def Base64ImageDeserializer(filename: str, streams: Mapping[str, Any]) -> Config:
    """Pictures as base64 in a text file; `streams` as for `ImageDeserializer`."""
    return _images("Base64ImageDeserializer", filename, streams)


def _images(kind: str, filename: str, streams: Mapping[str, Any]) -> Config:
    inputs: Config = {}
    for key, stream in streams.items():
        if stream.stream_alias == "image":
            inputs[key] = {"transforms": [*stream.get("transforms", ()), {"type": "Transpose"}]}
        elif stream.stream_alias == "label":
            inputs[key] = {"labelDim": stream.dim}
        else:
            raise ValueError(f"{kind}: invalid field name '{stream.stream_alias}', allowed are 'image' and 'label'")
    if not any("transforms" in one for one in inputs.values()):
        raise ValueError(f"{kind}: stream name ('image' or 'label') must be specified")
    return {"type": kind, "file": str(filename), "input": inputs}


def to_section(config: Mapping[str, Any]) -> ConfigParameters:
    """A dictionary as a configuration section."""
    section = parse("", "<python>")
    for name, value in config.items():
        nested = list(value) if isinstance(value, list | tuple) else [value]
        if any(isinstance(one, Mapping) for one in nested):
            section.insert(f"{name}={_text(value)}")
        else:
            section.insert(name, _text(value))
    return section


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "[" + ";".join(f"{name}={_quoted(_text(one))}" for name, one in value.items()) + "]"
    if isinstance(value, list | tuple):
        return "(" + ":".join(_quoted(_text(one)) for one in value) + ")"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _quoted(text: str) -> str:
    plain = text.startswith(("[", "(")) or '"' in text or text.isalnum()
    return text if plain else f'"{text}"'
