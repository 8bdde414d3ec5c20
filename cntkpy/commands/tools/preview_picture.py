"""`cntkpy preview --picture`: the first samples of every stream, drawn as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.cntk_config.base.writing import output_file
from cntkpy.commands.tools.plot_log import picture_form
from cntkpy.readers.data_api.value import Value
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.streams import StreamInformation

MOST_SAMPLES = 500
"""Columns of a picture."""
MOST_VALUES = 5000
"""Rows of a picture; wider streams are left out."""


def draw(streams: Sequence[StreamInformation], minibatch: Minibatch, out: Path) -> list[str]:
    """Draw the first samples of a minibatch; each stream is a panel.

    Returns the names of the streams that were left out because they have too many values.
    """
    form = picture_form(out)
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise UserError(
            "MissingPackage", "a picture needs matplotlib, which is not installed", hint=how_to_install("plot")
        ) from error
    drawn = [s for s in streams if s.dim <= MOST_VALUES]
    if not drawn:
        raise UserError(
            "BadStream", "there is no stream to draw", hint=f"streams of up to {MOST_VALUES} values are drawn"
        )
    heights = [1.2 if s.dim == 1 else 3.0 for s in drawn]
    figure: Any = Figure(figsize=(9, sum(heights) + 0.5), layout="constrained")
    panels = figure.subplots(len(drawn), 1, squeeze=False, height_ratios=heights)
    for (axes,), stream in zip(panels, drawn, strict=True):
        _panel(figure, axes, stream, minibatch)
    with output_file(out) as file:
        figure.savefig(file, format=form)
    return [s.name for s in streams if s.dim > MOST_VALUES]


def _panel(figure: Any, axes: Any, stream: StreamInformation, minibatch: Minibatch) -> None:
    """One stream: samples from left to right, values from bottom to top, a line between sequences."""
    samples, ends = first_samples(minibatch, stream.name)
    if stream.dim == 1:
        axes.plot(np.arange(len(samples)), samples[:, 0], linewidth=0.8, marker="." if len(samples) < 60 else "")
        axes.set_xlim(-0.5, len(samples) - 0.5)
    else:
        image = axes.imshow(samples.T, origin="lower", aspect="auto", interpolation="nearest", cmap="viridis")
        figure.colorbar(image, ax=axes, pad=0.01)
    if 1 < len(ends) < len(samples):
        for end in ends[:-1]:
            axes.axvline(end - 0.5, color="white" if stream.dim > 1 else "gray", linewidth=0.8)
    axes.set_title(f"{stream.name} ({stream.dim})", loc="left", fontsize=10)
    axes.set_xlabel("sample")


def first_samples(minibatch: Minibatch, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the first samples of a stream, one sequence after the other, dense (n, dim); where each ends, int64[m]."""
    data, layout = minibatch.streams[name], minibatch.layouts[name]
    rows: list[np.ndarray] = []
    ends: list[int] = []
    count = 0
    for sequence in Value.of_stream(data, layout, (data.shape[-1],)).as_sequences():
        part = sequence[: MOST_SAMPLES - count]
        dense = cast("np.ndarray", part if isinstance(part, np.ndarray) else part.toarray())
        rows.append(dense)
        count += len(dense)
        ends.append(count)
        if count == MOST_SAMPLES:
            break
    samples = np.concatenate(rows) if rows else np.zeros((1, data.shape[-1]))
    return samples, np.array(ends, np.int64)
