"""Mutated binary files: reading them gives data or a DataError, never anything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cntkpy.readers import DataError, create_reader
from cntkpy.readers.formats.binary.file import BinaryFile
from tests.readers.formats.binary.test_binary import SECTIONS, example

pytestmark = pytest.mark.malformed
resource = pytest.importorskip("resource", reason="this system limits no memory of processes")


def mutate(rng: np.random.Generator, data: bytearray) -> bytearray:
    """A few changed bytes, most in headers; sometimes a shorter file."""
    for _ in range(rng.integers(1, 5)):
        section = int(rng.choice(SECTIONS))
        if rng.random() < 0.7:
            fields = (0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 32, 39, 40, 42, 128, 256, 263, 264, 272, 274, 279, 280, 288)
            at = section + int(rng.choice(fields))
        else:
            at = section + int(rng.integers(0, 360))
        values = (0, 1, 2, 3, 4, 5, 0x7F, 0x80, 0xFF, int(rng.integers(256)))
        width = int(rng.choice((1, 2, 8)))
        piece = bytes([int(rng.choice(values))]) * width
        data[at : at + width] = piece
    if rng.random() < 0.1:
        del data[int(rng.integers(0, len(data))) :]
    return data


def read_everything(path: Path) -> None:
    reader = create_reader(f'readerType=BinaryReader ; prefetch=false ; file="{path}"')
    try:
        reader.start_minibatch_loop(2, 0)
        while reader.get_minibatch() is not None:
            pass
    finally:
        reader.close()


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.thorough)])
def test_mutated_files(tmp_path: Path, count: int) -> None:
    good = example(tmp_path / "x.bin")
    rng = np.random.default_rng(7)
    path = tmp_path / "y.bin"
    read_everything(tmp_path / "x.bin")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    errors = 0
    for _ in range(count):
        path.write_bytes(mutate(rng, bytearray(good)))
        try:
            read_everything(path)
        except DataError:
            errors += 1
        try:
            for section in BinaryFile(str(path)).sections.values():
                for ask in (section.strings, section.statistics):
                    try:
                        ask()
                    except DataError:
                        errors += 1
        except DataError:
            errors += 1
    assert errors > count // 4
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_random_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for size in (0, 1, 100, 320, 5000):
        data = rng.integers(0, 256, size, np.uint8).tobytes()
        for head in (b"", b"\xe9\xac\x00\x01\x40\x01"):
            (tmp_path / "x.bin").write_bytes(head + data)
            with pytest.raises(DataError):
                read_everything(tmp_path / "x.bin")
