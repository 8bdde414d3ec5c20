"""The whole lines of a file, block by block, in memory that is used again; a thread may read ahead."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from itertools import cycle

import numpy as np

from cntkpy.readers.pipeline.prefetch import READY_VALUES, Prefetch

READABLE = 64
"""Bytes of the memory after the lines, for kernels."""
_MARGINS = 16
"""The part of a block that its first line may take before it; the bytes of a longer line are put together anew."""


def whole_lines(file: io.RawIOBase, size: int, block: int, *, ahead: bool) -> Generator[tuple[np.ndarray, int, bool]]:
    """Yield the lines in the next bytes of a file.

    Args:
        file: the file; it moves on.
        size: how many bytes.
        block: how many are read at once.
        ahead: whether a thread reads the next blocks meanwhile.

    Yields:
        Whole lines, uint8[n], valid until the next ones, none if no line ended in the block; how many bytes of the next
        line were read; whether this is the end, where the last line may lack its LF.
    """
    margin, line = block // _MARGINS, list[np.ndarray]()
    buffers = [np.empty(margin + block + READABLE, np.uint8) for _ in range(1 + READY_VALUES if ahead else 1)]
    left = size

    def fill(buffer: np.ndarray) -> tuple[np.ndarray, int]:
        nonlocal left
        count: int = file.readinto(buffer.data[margin : margin + min(block, left)])  # type: ignore[assignment]
        left -= count
        return buffer, count

    blocks: Iterator[tuple[np.ndarray, int]] = map(fill, cycle(buffers))
    with ExitStack() as stack:
        if ahead:
            blocks = prefetch = Prefetch(fill, cycle(buffers).__next__)
            stack.callback(prefetch.close)
        for buffer, count in blocks:
            begin, end = margin - _size(line), margin + count
            cut = _last_newline(buffer, margin, end) + 1 or margin
            if not count or (begin < 0 and cut > margin):
                lines = np.concatenate([*line, buffer[margin:cut], np.empty(READABLE, np.uint8)])[:-READABLE]
            elif cut > margin:
                lines = buffer[begin:cut]
                lines[: margin - begin] = np.concatenate(line) if line else 0
            else:
                lines = buffer[:0]
            if len(lines):
                line.clear()
            if cut < end:
                line.append(buffer[cut:end].copy())
            yield lines, _size(line), not count
            if not count:
                return


def _size(parts: list[np.ndarray]) -> int:
    return sum(len(part) for part in parts)


def _last_newline(buffer: np.ndarray, begin: int, end: int) -> int:
    """Position of the last LF in buffer[begin:end], -1 if there is none."""
    step = 1 << 16
    while end > begin:
        low = max(begin, end - step)
        place = buffer[low:end].tobytes().rfind(b"\n")
        if place >= 0:
            return low + place
        end = low
    return -1
