"""Errors of readers in the words of Python programs.

Readers speak of a configuration: `dim`, `maxErrors`, the section of a stream. `MinibatchSource` is where their errors
reach a program, and names there the arguments that the program wrote.
"""

from __future__ import annotations

import re

ARGUMENTS = {
    "alias": "field",
    "columns": "field",
    "contextWindow": "context",
    "definesMBSize": "defines_mb_size",
    "dim": "shape",
    "expandToUtterance": "broadcast",
    "file": "filename",
    "frameMode": "frame_mode",
    "keyColumn": "key_column",
    "labelDim": "shape",
    "labelMappingFile": "label_mapping_file",
    "maxErrors": "max_errors",
    "maxSequenceSize": "max_sequence_length",
    "mlfFile": "mlf",
    "mlfFileList": "mlf",
    "rx": "scp",
    "scpFile": "scp",
    "truncationLength": "truncation_length",
    **{
        name: re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)
        for name in (
            "areaRatio", "aspectRatio", "brightnessRadius", "contrastRadius", "cropSize", "cropType", "jitterType",
            "padValue", "saturationRadius", "scaleMode", "sideRatio",
        )
    },
}  # fmt: skip
"""Options of configurations, and the arguments of Python that stand for them."""
KEYS = ("chunkSizeInBytes", "featureTransform", "grayscale", "multiViewCrop", "skipSequenceIds")
"""Options without an argument: a program sets them in the dictionary that a deserializer's function returns."""

_PHRASES: tuple[tuple[str, str], ...] = (
    (r"labelMappingFile lists", r'deserializer["input"][STREAM]["labelMappingFile"] = FILE lists'),
    (r"keyColumn = NAME says", r'key_column="NAME" says'),
    (r"(?:write|add) useNumericSequenceKeys=false [^;:.,]*", "write numbers as keys; only utterances have names"),
    (r": useNumericSequenceKeys=false says so, or they are", ": they are"),
    (r"If so, allowDataLoss=true reads those there are", "If so, leave the others out of the first file"),
    (r"prefixPathInSCP and \.\.\. say where files are", "its paths begin at the current directory"),
    (r"add grayscale=true to the deserializer", 'write deserializer["grayscale"] = True'),
    (r"(?:set |write )?format ?= ?(dense|sparse)", r"write is_sparse=\1"),
    (r"check 'file'", "check filename"),
    (r"leave truncated out", "leave truncation_length out"),
    (r"the section of ('[^']*')", r"the StreamDef of \1"),
    (r" of the reader\b", ""),
    (r"alias ?= ?([\w.]+)", r'field="\1"'),
    (r"alias for its name in the file", "field=... for its name in the file"),
    (r"dim ?= ?(\w+)", r"shape=\1"),
    (r"filter ?= ?", "filter="),
    (r"jitterType=(\w+)", r'jitter_type="\1"'),
    (r"scaleMode=(\w+)", r'scale_mode="\1"'),
    *((rf"{name} ?= ?(\w+)", rf'deserializer["{name}"] = \1') for name in KEYS),
)
"""Patterns, and what a program reads in their place; the first ones first."""
_PLACE = re.compile(r"<python>(?::input:(?P<stream>[^:]+))?(?::(?P<transform>transforms\[\d+\]))?:(?P<name>\w+): ?")
"""The place of a value in a section that was made of arguments."""
_BEFORE, _AFTER = r"""(?<![\w./\\'"\[-])""", r"""(?![\w/\\'"\]-]|\.\w)"""
_WORDS = ("columns", "file")
"""Options that are also words of sentences: they count only as the place of an error."""
_NAME = re.compile(_BEFORE + "(" + "|".join(ARGUMENTS.keys() - set(_WORDS)) + ")" + _AFTER)
_VALUES = (("is_sparse=dense", "is_sparse=False"), ("is_sparse=sparse", "is_sparse=True"))
_TRUTH = re.compile(r"(?<==)(true|false)\b|(?<== )(true|false)\b")


def _place(match: re.Match[str]) -> str:
    """Return the place of an argument: the stream, the transform and the argument itself."""
    name = ARGUMENTS.get(match["name"], match["name"])
    parts = [f"stream '{match['stream']}'" if match["stream"] else "", match["transform"] or ""]
    shown = ", ".join(filter(None, [*parts, "" if name == "type" else name]))
    return f"{shown}: " if shown else ""


def python_words(text: str) -> str:
    """Return a message or a hint with the arguments of Python in place of options of configurations."""
    text = _PLACE.sub(_place, text)
    for pattern, instead in _PHRASES:
        text = re.sub(_BEFORE + pattern if pattern[0].isalpha() else pattern, instead, text)
    for word, instead in _VALUES:
        text = text.replace(word, instead)
    text = _NAME.sub(lambda match: ARGUMENTS[match[1]], text)
    return _TRUTH.sub(lambda match: match[0].capitalize(), text)
