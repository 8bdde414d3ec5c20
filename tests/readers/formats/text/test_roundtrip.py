"""Whatever is written as text comes back the same, in every setting."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.readers import create_reader

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70).map(float)
dense = st.lists(numbers, min_size=2, max_size=2)
sparse = st.lists(st.tuples(st.integers(0, 4), numbers), max_size=3)
sequence = st.tuples(st.lists(dense, min_size=1, max_size=4), st.lists(sparse, min_size=1, max_size=4))
data = st.dictionaries(st.integers(0, 12) | st.integers(0, 2**64 - 1), sequence, min_size=1, max_size=12)
STYLES = [  # before a sample, between values, at the end of a line
    (" ", " ", "\n"),
    ("\t", "\t", "\r\n"),
    ("", "  ", "\n"),
    (" |# remark ", " \t ", " |#\n"),
    (" |q 7 ", " ", "|q\n"),
]


def as_text(sequences: dict[int, Any], style: int, ids: bool) -> str:
    """Text of sequences; a line after the first of a sequence has its id only if `ids`."""
    lines = []
    for key, (x, s) in sequences.items():
        for t in range(max(len(x), len(s))):
            before, between, end = STYLES[(style + len(lines)) % len(STYLES)]
            found = [f"|x {between.join(map(repr, x[t]))}"] if t < len(x) else []
            found += [f"|s {between.join(f'{i}:{v!r}' for i, v in s[t])}"] if t < len(s) else []
            lines.append(f"{key if t == 0 or ids else ''}{''.join(before + one for one in found)}{end}")
    return "".join(lines)


def unpacked(tools: Any, minibatches: list[Any]) -> dict[int, Any]:
    """Sequence per key, each key once."""
    found = [one for m in minibatches for one in tools["unpack"](m)]
    assert all(count == 1 for count in Counter(key for key, _ in found).values())
    return {key: (s["x"], s["s"]) for key, s in found}


@pytest.mark.thorough
@settings(max_examples=60)
@given(
    sequences=data,
    chunk=st.integers(1, 400),
    window=st.integers(0, 30),
    randomize=st.booleans(),
    size=st.integers(1, 9),
    memory=st.sampled_from([1, 400, 1 << 20]),
    stop=st.integers(0, 6),
    workers=st.integers(1, 3),
    threads=st.integers(0, 3),
    together=st.booleans(),
    style=st.integers(0, 9),
)
def test_written_sequences_are_read_back(
    sequences, chunk, window, randomize, size, memory, stop, workers, threads, together, style, tools
):
    """together: minibatches are made on three threads, which also load what they need."""
    from cntkpy.readers.pipeline.store import ChunkStore

    with patch("os.cpu_count", lambda: 3), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.ctf"
        path.write_bytes(as_text(sequences, style % 5, ids=style < 5).encode())
        section = (
            f'file="{path}";input=[x=[dim=2;format=dense];s=[dim=5;format=sparse]];chunkSizeInBytes={chunk}'
            f";randomizationWindow={window};randomize={str(randomize).lower()};traceLevel=0"
            f";multiThreadedDeserialization={str(together).lower()}"
        )

        def read(rank: int) -> list[Any]:
            reader = create_reader(section, "double")
            how = {"threads": 0, "callers": 3} if together else {"threads": threads}
            reader.source.store = ChunkStore(reader.source.deserializer, memory=memory, **how)
            reader.start_minibatch_loop(size, 2, None, rank, workers)
            found = []
            for _ in range(stop):
                minibatch = reader.get_minibatch()
                if minibatch is not None:
                    found.append(minibatch)
            state = json.loads(json.dumps(reader.get_state()))
            reader.close()
            again = create_reader(section, "double")
            again.start_minibatch_loop(1, 0)
            again.set_state(state)
            found += tools["rest"](again)
            again.close()
            return found

        found = unpacked(tools, [m for rank in range(workers) for m in read(rank)])
        assert found == sequences


@settings(max_examples=40)
@given(st.binary(max_size=60))
def test_any_bytes_give_data_or_a_located_error(tail):
    from cntkpy.readers import DataError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.ctf"
        path.write_bytes(b"0 |x 1 2 |s 0:1\n" + tail)
        section = f'file="{path}";input=[x=[dim=2;format=dense];s=[dim=5;format=sparse]];randomize=false;traceLevel=0'
        for errors in (0, 1000):
            try:
                reader = create_reader(f"{section};maxErrors={errors};prefetch=false")
                reader.start_minibatch_loop(100, 0)
                while reader.get_minibatch():
                    pass
            except DataError as error:
                assert "line " in str(error)


@cache
def number_kernel() -> Any:
    """Parts of kernels are called by kernels only."""
    from cntkpy.readers.kernels.jit import kernel
    from cntkpy.readers.kernels.kernel_types import Int
    from cntkpy.readers.kernels.number_kernels import OTHER, any_real, real

    def number(p: Int):
        end, value, status = real(p)
        if status == OTHER:
            end, value, status = any_real(p)
        return end, value, status

    return kernel(number)


@settings(max_examples=100)
@given(
    st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{0,25})?", fullmatch=True)
    | st.from_regex(r"[+-]?[0-9]{1,22}(\.[0-9]{1,22})?[eE][+-]?[0-9]{1,3}", fullmatch=True)
)
def test_numbers_are_rounded_as_python_does(text):
    from cntkpy.readers.kernels.number_kernels import SLOW

    buffer = np.frombuffer(text.encode() + b"\n" * 40, np.uint8)
    base = buffer.ctypes.data
    end, value, status = number_kernel()(base)
    assert end - base == len(text)
    if status != SLOW:
        assert value == float(text)
