"""Labels of a section as ranges of frames of one class, which is what an MLF holds."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.errors import DataError
from cntkpy.readers.utterances.labels import Labels, read_states
from cntkpy.readers.utterances.lists import picked

from . import archive
from .labels import Classes, read_classes
from .parameters import KaldiLabelParameters, named_in, specifier_of


def open_labels(
    p: KaldiLabelParameters, wanted: Container[str] | None, delay: int = 0
) -> tuple[Labels, int, np.ndarray | None, LabelMap | None]:
    """Return the labels that a section describes.

    Args:
        p: the section.
        wanted: keys that are kept; None: all.
        delay: the label of a frame is that of this many frames before it, the first ones have that of the first.

    Returns:
        The labels, the number of classes, float32 targets (classes, dim) or None, names of the classes or None.

    Raises:
        ConfigError: the section cannot be.
        DataError: a file cannot be read, or does not fit the section.
    """
    from .object_kernels import KEY

    dim = p.classes()
    p.check_type()
    p.check_together()
    if p.labels is None:
        raise p.error("mlfFile", "the table of labels is missing", "add mlfFile=ark:FILE", "MissingParameter")
    specifier, path = specifier_of(str(p.labels))
    with named_in(path):
        label_classes = read_classes(
            specifier, f"{path}: " if path else "", wanted.__contains__ if wanted is not None else None
        )
    states = read_states(str(p.states)) if p.states else None
    classes = label_classes.classes if states is None else _mapped(label_classes, states, str(p.states))
    table = label_classes.table
    numbers = table.entries[label_classes.which, KEY] if table.lines is None else table.lines[label_classes.which]
    labels = _ranges(
        label_classes.keys, label_classes.lengths, _delayed(classes, label_classes.lengths, delay), table, numbers
    )
    return labels, dim, p.target_table(states), states


def _mapped(label_classes: Classes, states: LabelMap, path: str) -> np.ndarray:
    """Classes by the place of their number, as decimal text, in the list of states."""
    names = [name.decode("latin-1") for name in states.ids]
    classes = {name: i for i, name in enumerate(names)}
    top = int(label_classes.classes.max(initial=0)) + 1
    table = np.array([classes.get(str(number), -1) for number in range(top)], np.int32)
    mapped = table[label_classes.classes]
    bad = np.flatnonzero(mapped < 0)
    if len(bad):
        index = int(bad[0])
        u = int(np.searchsorted(np.cumsum(label_classes.lengths), index, side="right"))
        raise DataError(
            f"{label_classes.place(u)}: the state {label_classes.classes[index]} of "
            f"{label_classes.keys[u]} is not in the state list {path}.",
            path=path,
            hint="labelMappingFile has the numbers of the archive, one a line",
        )
    return mapped


def _delayed(classes: np.ndarray, lengths: np.ndarray, delay: int) -> np.ndarray:
    if not delay:
        return classes
    first = np.repeat(starts_of(lengths)[:-1], lengths)
    return classes[np.maximum(np.arange(len(classes)) - delay, first)]


def _ranges(
    keys: list[str], lengths: np.ndarray, classes: np.ndarray, table: archive.Table, numbers: np.ndarray
) -> Labels:
    """Runs of equal classes; utterances without frames have none and are left out."""
    kept = np.flatnonzero(lengths)
    lengths = lengths[kept]
    starts = starts_of(lengths)
    begins = np.ones(len(classes), bool)
    begins[1:] = np.diff(classes) != 0
    begins[starts[:-1]] = True
    runs = np.flatnonzero(begins)
    ends = np.append(runs[1:], len(classes))[: len(runs)]
    first = np.searchsorted(runs, starts)
    owner = np.repeat(np.arange(len(kept)), np.diff(first))
    return Labels(
        picked(keys, kept),
        first,
        (ends - starts[owner]).astype(np.int32),
        classes[runs].astype(np.uint16),
        np.ones(len(kept), bool),
        [(table.path, int(numbers[i])) for i in kept.tolist()],
        "byte" if table.lines is None else "line",
    )
