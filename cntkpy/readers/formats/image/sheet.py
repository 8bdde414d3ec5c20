"""A contact sheet: the pictures of a minibatch as the network sees them, with their labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.writing import output_file
from cntkpy.readers.common.sparse import is_dense
from cntkpy.readers.formats.image.transforms.opencv import opencv
from cntkpy.readers.minibatch import Minibatch, as_dense
from cntkpy.readers.reader import Reader

from .source import PictureSource

SMALLEST, LARGEST = 64, 160
"""Sides of a tile in pixels: smaller pictures are shown enlarged, larger ones reduced."""
TEXT, MARGIN, MOST = 18, 4, 256


def write_sheet(path: Path, reader: Any, minibatch: Minibatch) -> int:
    """Write a PNG file of the pictures of a minibatch; returns their number.

    Nothing is written, and the number is 0, if the reader has no pictures or the file is of another kind.

    Values outside 0..255 (after Mean) are stretched to that range, all by the same factor. At most 256 pictures are
    shown. Under each stands the class of every one-hot stream.
    """
    source = reader.source if isinstance(reader, Reader) else None
    if not isinstance(source, PictureSource) or path.suffix.lower() != ".png" or not minibatch.num_sequences:
        return 0
    labels = _labels(minibatch, {picture.name for picture, _ in source.pictures})
    sheets: list[np.ndarray] = []
    shown = 0
    for picture, _ in source.pictures:
        samples = minibatch.streams[picture.name].reshape(-1, *picture.shape)[:MOST]
        if picture.channels_first:
            samples = samples.transpose(0, 2, 3, 1)
        sheets.append(_sheet(_visible(samples), labels))
        shown += len(samples)
    width = max(sheet.shape[1] for sheet in sheets)
    padded = [np.pad(s, ((0, 0), (0, width - s.shape[1]), (0, 0)), constant_values=255) for s in sheets]
    _, data = opencv().imencode(".png", np.concatenate(padded))
    with output_file(path) as file:
        file.write(data.tobytes())
    return shown


def _labels(minibatch: Minibatch, pictures: set[str]) -> list[str]:
    """Return the caption of each picture: the classes of streams with a single class per sample."""
    texts: list[list[str]] = [[] for _ in range(minibatch.num_sequences)]
    for name, data in minibatch.streams.items():
        layout = minibatch.layouts[name]
        if name in pictures or layout.T != 1 or len(texts) != layout.S:
            continue
        rows = as_dense(data.reshape(layout.S, -1) if is_dense(data) else data)
        if ((rows != 0).sum(axis=1) == 1).all() and (rows.max(axis=1) == 1).all():
            for text, number in zip(texts, rows.argmax(axis=1).tolist(), strict=True):
                text.append(str(number))
    return [", ".join(text) for text in texts]


def _visible(samples: np.ndarray) -> np.ndarray:
    """Pixels uint8 (n, height, width, 3)."""
    low, high = float(samples.min()), float(samples.max())
    if low < 0 or high > 255:
        samples = (samples - low) * (255 / max(high - low, 1e-9))
    pixels = np.clip(np.rint(samples), 0, 255).astype(np.uint8)
    return np.repeat(pixels, 3, axis=3) if pixels.shape[3] == 1 else pixels[..., :3]


def _sheet(pictures: np.ndarray, labels: Sequence[str]) -> np.ndarray:
    """Tiles in rows, white around them."""
    cv2 = opencv()
    height, width = map(int, pictures.shape[1:3])
    if max(height, width) < SMALLEST:
        factor = float(math.ceil(SMALLEST / max(height, width)))
    else:
        factor = min(1.0, LARGEST / max(height, width))
    h, w = max(1, round(height * factor)), max(1, round(width * factor))
    columns = math.ceil(math.sqrt(len(pictures) * h / w))
    rows = math.ceil(len(pictures) / columns)
    across, down = w + 2 * MARGIN, h + 2 * MARGIN + TEXT
    sheet = np.full((rows * down, columns * across, 3), 255, np.uint8)
    how = cv2.INTER_NEAREST if factor >= 1 else cv2.INTER_AREA
    for i, picture in enumerate(pictures):
        y, x = i // columns * down + MARGIN, i % columns * across + MARGIN
        sheet[y : y + h, x : x + w] = cv2.resize(np.ascontiguousarray(picture), (w, h), interpolation=how)
        cv2.putText(sheet, labels[i], (x, y + h + TEXT - 4), cv2.FONT_HERSHEY_SIMPLEX, 0.42, (0, 0, 0), 1, cv2.LINE_AA)
    return sheet
