"""A CTF file of samples and one of sequences, and a source of them, for tests of what sources deliver."""

from pathlib import Path
from typing import Any

from cntkpy.readers import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs

STREAMS = StreamDefs(x=StreamDef(field="x", shape=2), y=StreamDef(field="y", shape=4, is_sparse=True))


def write_files(folder: Path) -> None:
    """50 samples, and 20 sequences of 1 to 3 samples."""
    lines = [f"{k} |x {k} {t} |y {k % 4}:1\n" for k in range(20) for t in range(1 + k % 3)]
    (folder / "sequences.ctf").write_text("".join(lines))
    (folder / "samples.ctf").write_text("".join(f"{k} |x {k} {k / 2} |y {k % 4}:{k}\n" for k in range(50)))


def source(file: str = "samples.ctf", **more: Any) -> MinibatchSource:
    """A source of one of the files in the current folder, one sweep in file order by default."""
    return MinibatchSource(CTFDeserializer(file, STREAMS), **{"max_sweeps": 1, "randomize": False} | more)
