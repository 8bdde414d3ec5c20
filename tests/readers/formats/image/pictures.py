"""Pictures spelled out by their pixels, written without OpenCV, so that its order of channels is tested, too."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cntkpy.readers import create_reader

RED, GREEN, BLUE, BLACK, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (0, 0, 0), (255, 255, 255)
GREYS = [[10, 20, 30, 40], [50, 60, 70, 80], [90, 100, 110, 120], [130, 140, 150, 160]]
"""A grey picture of 4 x 4 whose values tell their place."""


def png(rows: Sequence[Sequence[Any]], *, bits: int = 8) -> bytes:
    """A PNG file: pixels are grey values, or (red, green, blue[, alpha])."""
    first = rows[0][0]
    kind = {0: 0, 3: 2, 4: 6}[0 if isinstance(first, int) else len(first)]
    flat = [[value for pixel in row for value in ([pixel] if isinstance(pixel, int) else pixel)] for row in rows]
    lines = b"".join(b"\0" + struct.pack(f">{len(row)}{'B' if bits == 8 else 'H'}", *row) for row in flat)
    return png_chunks(len(rows[0]), len(rows), bits, kind, zlib.compress(lines))


def png_chunks(width: int, height: int, bits: int, kind: int, data: bytes) -> bytes:
    """A PNG file with this header and data."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def bmp(rows: Sequence[Sequence[tuple[int, int, int]]]) -> bytes:
    """A BMP file of 24 bits; pixels are (red, green, blue)."""
    pad = b"\0" * (-3 * len(rows[0]) % 4)
    data = b"".join(b"".join(bytes(pixel[::-1]) for pixel in row) + pad for row in reversed(rows))
    info = struct.pack("<IiiHHIIiiII", 40, len(rows[0]), len(rows), 1, 24, 0, len(data), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(data), 0, 0, 54) + info + data


def solid(color: tuple[int, int, int], width: int = 4, height: int = 8) -> list[list[tuple[int, int, int]]]:
    """Rows of one colour."""
    return [[color] * width for _ in range(height)]


JITTER = "Crop cropType=randomside sideRatio=0.3:1 jitterType=uniratio aspectRatio=0.8:1, Scale width=6 height=5 channels=3, Color brightnessRadius=0.3 contrastRadius=0.2 saturationRadius=0.1, Transpose"  # noqa: E501
"""Everything random at once."""


class Album:
    """A folder of pictures and map files."""

    def __init__(self, folder: Path):
        self.folder = folder

    def write(self, name: str, content: bytes | str | Sequence[Sequence[Any]]) -> Path:
        """A file of bytes, text, or the PNG file of pixels."""
        path = self.folder / name
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content if isinstance(content, bytes) else png(content))
        return path

    def map(self, *names: str, file: str = "map.txt") -> str:
        """A map file of pictures in this folder, whose labels are 0, 1, 2, ...; its path."""
        return str(self.write(file, "".join(f".../{name}\t{i}\n" for i, name in enumerate(names))))

    def section(
        self,
        file: str,
        transforms: str = "",
        labels: int | None = 1000,
        kind: str = "ImageDeserializer",
        names: str = "x y",
        **options: Any,
    ) -> str:
        """The section of a deserializer. transforms: "Crop sideRatio=0.5, Transpose"."""
        x, y = names.split()
        parts = [one.strip().split(" ") for one in transforms.split(",") if one.strip()]
        chain = ":".join(f"[type={one[0]}{''.join(';' + option for option in one[1:])}]" for one in parts)
        label = f"; {y}=[labelDim={labels}]" if labels is not None else ""
        more = "".join(f"; {name}={value}" for name, value in options.items())
        return f'[type={kind}; file="{file}"; input=[{x}=[transforms=({chain})]{label}]{more}]'

    def reader(self, *sections: str, precision: str = "float", **options: Any) -> Any:
        """A composite reader."""
        more = "".join(f"; {name}={value}" for name, value in options.items())
        return create_reader(f"deserializers=({':'.join(sections)}){more}", precision)

    def samples(self, transforms: str, *pictures: Any, precision: str = "float", **options: Any) -> np.ndarray:
        """What transforms make of pictures (rows of pixels, or bytes): (n, *shape), in order."""
        names = []
        for i, picture in enumerate(pictures):
            names.append(f"p{i}.png")
            self.write(names[-1], picture)
        section = self.section(self.map(*names), transforms, **options)
        reader = self.reader(section, precision=precision, randomize="false")
        minibatches = read(reader, 100)
        shape = reader.streams[0].sample_shape
        return np.concatenate([m.streams["x"].reshape(-1, *shape) for m in minibatches])


def read(reader: Any, size: int, epoch: int = 0, samples: int | None = None, **workers: int) -> list[Any]:
    """The minibatches of an epoch; then the reader is closed."""
    reader.start_minibatch_loop(size, epoch, samples, **workers)
    found = []
    try:
        while (minibatch := reader.get_minibatch()) is not None:
            found.append(minibatch)
    finally:
        reader.close()
    return found


def noise_album(folder: Path) -> Album:
    """Twenty pictures of noise, of different sizes, and their map file map.txt."""
    found, rng = Album(folder), np.random.default_rng(3)
    for i in range(20):
        rows = rng.integers(0, 256, (8 + i % 3, 9 + i % 4, 3)).tolist()
        found.write(f"{i}.png", [[tuple(pixel) for pixel in row] for row in rows])
    found.map(*(f"{i}.png" for i in range(20)))
    return found


def keys(minibatches: list[Any]) -> list[Any]:
    return [key for m in minibatches for key in m.keys]


def same(one: list[Any], two: list[Any]) -> None:
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert a.keys == b.keys and (a.end_of_sweep, a.end_of_epoch) == (b.end_of_sweep, b.end_of_epoch)
        assert list(a.streams) == list(b.streams)
        for name, data in a.streams.items():
            other = b.streams[name]
            if isinstance(data, np.ndarray):
                np.testing.assert_array_equal(data, other)
            else:
                assert (data != other).nnz == 0
            np.testing.assert_array_equal(a.layouts[name].sequences, b.layouts[name].sequences)


def epoch(reader: Any, size: int, number: int, samples: int | None = None) -> list[Any]:
    reader.start_minibatch_loop(size, number, samples)
    return rest(reader)


def rest(reader: Any) -> list[Any]:
    found = []
    while (m := reader.get_minibatch()) is not None:
        found.append(m)
    return found


def lines(*rows: tuple[Any, ...]) -> str:
    return "".join("\t".join(map(str, (*row[:-1], base64.b64encode(row[-1]).decode()))) + "\n" for row in rows)
