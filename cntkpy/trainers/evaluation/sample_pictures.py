"""Samples of an image input as small pictures, for the worst samples of a test."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.networks.graph.network import Node, ValidatedNetwork

SMALLEST, LARGEST = 4, 512
"""Pixels of a side of what is taken for a picture."""
SIDE = 48
"""Pixels of the longer side of a kept picture; of larger pictures every n-th pixel."""


def picture_input(network: ValidatedNetwork, scores: Node) -> Node | None:
    """Return the image that the scores are computed from: the only input of a shape `[width x height x 1 or 3]`.

    Returns:
        The node; None: there is none, or several.
    """
    inputs = [node for node in network.below([scores]) if node.operation == "InputValue" and _is_picture(node)]
    return inputs[0] if len(inputs) == 1 else None


def _is_picture(node: Node) -> bool:
    shape = node.shape or ()
    return len(shape) == 3 and shape[2] in (1, 3) and all(SMALLEST <= side <= LARGEST for side in shape[:2])


def cells(values: Any, places: Iterable[tuple[int, int]], count: int) -> NDArray[Any]:
    """Return the values of some cells (step, slot) of an array (steps, slots, ...).

    On a device only these are fetched; `count`, at least their number, is how many, so that one program does for all.
    """
    chosen = list(places)
    steps, slots = np.array((chosen + [(0, 0)] * count)[:count]).T
    return np.asarray(values[steps, slots])[: len(chosen)]


def picture(sample: NDArray[Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Return a sample as bytes: 0 is its least value, 255 its greatest.

    Args:
        sample: its elements, in CNTK's order: the first axis of `shape` is the fastest one in memory.
        shape: `(width, height, channels)`; three channels are blue, green, red, as CNTK's readers give them.

    Returns:
        `width`, `height`, `channels`, and `pixels`: in Base64, rows from the top, red, green, blue of each pixel.
    """
    width, height, channels = shape
    planes = np.asarray(sample, np.float64).reshape(channels, height, width)[::-1]
    every = math.ceil(max(width, height) / SIDE)
    pixels = planes[:, ::every, ::every].transpose(1, 2, 0)
    pixels = np.where(np.isfinite(pixels), pixels, 0.0)
    low, high = float(pixels.min()), float(pixels.max())
    scaled: NDArray[np.uint8] = np.round((pixels - low) * (255 / (high - low) if high > low else 0)).astype(np.uint8)
    rows, columns = scaled.shape[:2]
    text = base64.b64encode(scaled.tobytes()).decode()
    return {"width": columns, "height": rows, "channels": channels, "pixels": text}
