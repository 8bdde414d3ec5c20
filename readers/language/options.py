"""What SequenceReader and LUSequenceReader have in common: how their sections are understood."""

from __future__ import annotations

from typing import Any

from cntk_config.diagnostics import ConfigError
from cntk_config.parameters import ConfigParameters

from ..reader import Reader
from ..uci.options import classify

TRAINING = ("train", "trainrnn", "adapt")


def feature_section(section: ConfigParameters) -> str:
    """Name of the section of features; it names the stream of words."""
    names = classify(section).features
    if not names:
        raise section.error("", "the reader has no section of features", "add features=[dim=0]", "MissingParameter")
    return names[0]


def label_sections(section: ConfigParameters, names: tuple[str, str] = ("", "")) -> tuple[str, str]:
    """Names of the sections of input and output labels: as named, or by alphabet, but `...In` before the other one."""
    if all(names):
        for name in names:
            if not section.exists_current(name):
                raise section.error("", f"there is no section of labels named '{name}'", None, "MissingParameter")
        return names
    found = classify(section).labels
    if len(found) != 2:
        raise section.error(
            "",
            f"the reader needs two sections of labels, one for the words and one for what they are labelled with; "
            f"it has {len(found)}{': ' if found else ''}{', '.join(found)}",
            "add labelIn=[...] and labels=[...], each with labelType and labelDim",
            "MissingParameter",
        )
    first, second = found
    if second.lower().endswith("in") and not first.lower().endswith("in"):
        first, second = second, first
    return first, second


def is_training(section: ConfigParameters) -> bool:
    """Whether the section belongs to a command that trains."""
    try:
        action = section.find("action")
        names = [] if action is None else [str(name).lower() for name in action.as_array()]
    except ConfigError:
        return False
    return any(name in TRAINING for name in names)


def reader_of(source: Any) -> Reader:
    """A reader over a source of another kind than `readers.source.Source`, with the same methods."""
    return Reader(source)
