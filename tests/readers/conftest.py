"""Small data files, written by the tests that read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.readers import Minibatch, Reader, create_reader
from cntkpy.readers.kernels import budget

SINGLES = "".join(f"{i} |x {i + 1} |y {100 * (i + 1)}\n" for i in range(20))
LENGTHS = (3, 5, 2, 2, 4, 1, 6, 3, 1, 4, 2, 5, 1, 3)
SEQUENCES = "".join(
    f"{i + 3} |x {100 * (i + 1) + t} |s {(i + t) % 5}:{t + 1}\n" for i, n in enumerate(LENGTHS) for t in range(n)
)


BOTH = ("test_grammar", "test_errors", "test_keys_and_index", "test_uci", "test_uci_errors", "test_uci_fuzz",
        "test_malformed", "test_roundtrip", "test_local_timeline", "test_composite", "test_orders", "test_htk_reader",
        "test_htk_streams", "test_language", "test_binary", "test_reader", "test_cbf", "test_descriptions",
        "test_minibatch_source", "test_values", "test_htk_features", "test_mlf")  # fmt: skip
"""Tests that are made with kernels and without them; all others of readers are made with kernels."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Both ways to read little text."""
    if metafunc.module.__name__.rpartition(".")[2] in BOTH:
        ways = [pytest.param(0, id="kernels", marks=pytest.mark.thorough), pytest.param(10**12, id="plain")]
        metafunc.parametrize("work_without_kernels", ways, indirect=True)


@pytest.fixture(autouse=True)
def work_without_kernels(request: pytest.FixtureRequest) -> None:
    """How much may be read without kernels, see `cntkpy.readers.kernels.budget`."""
    budget.reset(getattr(request, "param", 0))


class Files:
    """Makes readers of text."""

    def __init__(self, folder: Path):
        self.folder = folder

    def write(self, text: str | bytes, name: str = "data.ctf") -> Path:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def reader(self, text: str | bytes, inputs: str, precision: str = "double", **options: Any) -> Reader:
        """A text reader. inputs: "x:2 s:5:sparse", also name:dim:form:alias."""
        path = self.write(text)
        return create_reader(f'file="{path}" ; input=[{sections(inputs)}] ; {settings(options)}', precision)

    def minibatches(self, text: str | bytes, inputs: str, size: int = 1000, **options: Any) -> list[Minibatch]:
        """All minibatches of one epoch in file order."""
        reader = self.reader(text, inputs, **{"randomize": "false", **options})
        try:
            return epoch(reader, size)
        finally:
            reader.close()

    def sequences(self, text: str | bytes, inputs: str, **options: Any) -> list[tuple[int, dict[str, list[Any]]]]:
        """(key, {stream: samples}) of every sequence in file order."""
        return [found for m in self.minibatches(text, inputs, **options) for found in unpack(m)]


def sections(inputs: str) -> str:
    """Input sections from a short form."""
    found = []
    for one in inputs.split():
        name, dim, form, alias, *_ = [*one.split(":"), "", "", ""]
        found.append(f"{name}=[dim={dim};format={form or 'dense'}{f';alias={alias}' if alias else ''}]")
    return ";".join(found)


def settings(options: dict[str, Any]) -> str:
    """Options as config text."""
    text = {k: str(v).lower() if isinstance(v, bool) else v for k, v in options.items()}
    return ";".join(f"{k}={v}" for k, v in text.items())


def epoch(reader: Reader, size: int, number: int = 0, samples: int | None = None, **workers: int) -> list[Minibatch]:
    """All minibatches of an epoch."""
    reader.start_minibatch_loop(size, number, samples, **workers)
    return rest(reader)


def rest(reader: Reader) -> list[Minibatch]:
    """The minibatches up to the end of the epoch."""
    found = []
    while (minibatch := reader.get_minibatch()) is not None:
        found.append(minibatch)
    return found


def unpack(minibatch: Minibatch) -> list[tuple[int, dict[str, list[Any]]]]:
    """(key, {stream: samples}) per sequence; a sparse sample is a list of (index, value)."""
    out: list[tuple[int, dict[str, list[Any]]]] = [(key, {}) for key in minibatch.keys]
    for name, layout in minibatch.layouts.items():
        data = minibatch.streams[name]
        for i, (_, slot, begin, end) in enumerate(layout.sequences.tolist()):
            samples = []
            for t in range(max(begin, 0), min(end, layout.T)):
                if isinstance(data, np.ndarray):
                    samples.append(data[t, slot].tolist())
                else:
                    row = t * layout.S + slot
                    at = slice(data.indptr[row], data.indptr[row + 1])
                    samples.append(list(zip(data.indices[at].tolist(), data.data[at].tolist(), strict=True)))
            out[i][1][name] = samples
    return out


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def tools() -> dict[str, Callable[..., Any]]:
    return {"epoch": epoch, "rest": rest, "unpack": unpack}


@pytest.fixture
def singles() -> str:
    return SINGLES


@pytest.fixture
def sequences() -> str:
    return SEQUENCES


@pytest.fixture
def compose(files: Files) -> Callable[..., Reader]:
    """Makes a composite reader of [(text, inputs), ...]; inputs short or as sections, then more settings."""

    def make(parts: Sequence[tuple[str, ...]], **options: Any) -> Reader:
        found = []
        for i, (text, inputs, *more) in enumerate(parts):
            own = "".join(f";{one}" for one in more)
            own += f";chunkSizeInBytes={options['chunkSizeInBytes']}" if "chunkSizeInBytes" in options else ""
            inputs = inputs if "=" in inputs else sections(inputs)
            path = files.write(text, f"part{i}.ctf")
            kind = "type=CNTKTextFormatDeserializer;module=CNTKTextFormatReader"
            found.append(f'[{kind};file="{path}";input=[{inputs}]{own}]')
        return create_reader(f"{settings({'traceLevel': 0, **options})};deserializers=({':'.join(found)})", "double")

    return make
