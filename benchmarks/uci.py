"""UCIFastReader: text next to numpy.fromstring, and the binary cache (rows of benchmarks/text.py)."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import peers


def lines(make: Callable[[np.random.Generator, int], str], rng: np.random.Generator, megabytes: int) -> str:
    """So many megabytes of lines; `make` takes the number of a record."""
    records, size = list[str](), 0
    while size < megabytes * 1_000_000:
        records.append(make(rng, len(records)))
        size += len(records[-1])
    return "".join(records)


def pixels(rng: np.random.Generator, number: int) -> str:
    """A label and 784 whole numbers, four fifths of them zero."""
    values = rng.integers(0, 256, 784) * (rng.random(784) > 0.8)
    return f"{number % 10} {' '.join(map(str, values))}\n"


def decimals(rng: np.random.Generator, number: int) -> str:
    """A label and 363 numbers with six decimals."""
    return f"{number % 10} " + " ".join(f"{v:.6f}" for v in rng.standard_normal(363)) + "\n"


def read(folder: Path, dim: int, randomize: str, *, cache: bool) -> None:
    """One sweep in minibatches of 256, from opening the file on."""
    from cntkpy.readers import create_reader

    wanted = f'writerType=BinaryReader ; wfile="{folder}/data.bin"' if cache else ""
    reader = create_reader(
        f'readerType=UCIFastReader ; randomize={randomize} ; file="{folder}/data.txt" ; {wanted} ;'
        f"features=[dim={dim};start=1;sectionType=Data] ;"
        f'labels=[start=0;labelDim=10;labelType=Category;labelMappingFile="{folder}/map";sectionType=Labels]'
    )
    peers.sweep(reader)


def write_cache(folder: Path, dim: int) -> None:
    """The pass that writes the cache."""
    (folder / "data.bin").unlink(missing_ok=True)
    read(folder, dim, "none", cache=True)


def rows(size: int, repeat: int) -> list[str]:
    """Rows of a table: MB per second in file order and shuffled, of the cache, of `numpy.fromstring`, and the ratio."""
    rng, table = np.random.default_rng(1), []
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        (folder / "map").write_text("".join(f"{i}\n" for i in range(10)))
        for title, make, dim in (("whole numbers, 784 a line", pixels, 784), ("decimals, 363 a line", decimals, 363)):
            text = lines(make, rng, size)
            (folder / "data.txt").write_text(text)
            calls: dict[str, Callable[[], object]] = {
                "text": lambda dim=dim: read(folder, dim, "none", cache=False),
                "shuffled": lambda dim=dim: read(folder, dim, "auto", cache=False),
                "numpy": lambda text=text: np.fromstring(text, sep=" ", dtype=np.float32),
                "write cache": lambda dim=dim: write_cache(folder, dim),
                "cache": lambda dim=dim: read(folder, dim, "none", cache=True),
            }
            seconds = peers.in_turns(calls, repeat)
            text_speed, shuffled, numpy, cached = (
                f"{len(text) / 1e6 / peers.median(seconds[key]):,.0f}" for key in ("text", "shuffled", "numpy", "cache")
            )
            ratio = peers.ratio(seconds["numpy"], seconds["text"])
            table.append(f"| UCI, {title}; cache {cached} | {text_speed} | {shuffled} | | | {numpy} | {ratio} |")
    return table
