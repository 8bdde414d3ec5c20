"""Random lines: UCIFastReader reads what a few lines of Python read, and complains where they complain."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cntkpy.readers import DataError
from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.formats.uci.columns import Columns
from cntkpy.readers.formats.uci.text import UCIText

pytestmark = pytest.mark.malformed

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
LABELS = [b"a", b"1", b"-", b"\xff", b"e0"]
SIGNS = np.frombuffer(b"0123456789123.+-eE    \t\r\n\n\n;,a\x00\xff#", np.uint8)


def reference(data: bytes, c: Columns) -> list[tuple[list[float], int | list[float] | None]] | None:
    """Records, or None if there is anything wrong."""
    table = c.translation() or bytes(range(256))
    found = []
    for line in data.split(b"\n"):
        seen = line.translate(table)
        spans = [m.span() for m in re.finditer(rb"[^ \t\r]+", seen)]
        if not spans:
            continue
        used = [*range(c.first_feature, c.first_feature + c.dim)]
        label = [*range(c.first_label, c.first_label + c.label_dim)] if c.kind != "none" else []
        if len(spans) <= max(used + label):
            return None
        for i, (begin, end) in enumerate(spans):
            if i in label and c.kind == "category":
                if line[begin:end] not in LABELS:
                    return None
            elif (i in used or c.kind != "none") and NUMBER.fullmatch(seen[begin:end]) is None:
                return None
        values = [float(seen[slice(*spans[i])]) for i in used]
        if c.kind == "category":
            found.append((values, LABELS.index(line[slice(*spans[label[0]])])))
        else:
            found.append((values, [float(seen[slice(*spans[i])]) for i in label] or None))
    return found or None


def read(path: Path, c: Columns, chunk_size: int) -> list[tuple[list[float], int | list[float] | None]]:
    data = UCIText(str(path), c, np.float64, LabelMap(LABELS), chunk_size=chunk_size)
    found = []
    for number in range(data.table.num_chunks):
        chunk = data.load_chunk(number)
        rows = chunk.streams["x"].values.reshape(-1, c.dim).tolist()
        labels: list[int | list[float] | None] = [None] * len(rows)
        if c.kind == "category":
            ids = chunk.streams["y"].indices
            assert ids is not None
            labels = ids.tolist()
        elif c.kind == "regression":
            labels = chunk.streams["y"].values.reshape(-1, c.label_dim).tolist()
        found += zip(rows, labels, strict=True)
    return found


FORMS = [
    Columns("x", 0, 1),
    Columns("x", 1, 2),
    Columns("x", 1, 1, "y", "category", 0, 1),
    Columns("x", 0, 1, "y", "category", 1, 1, ";", ","),
    Columns("x", 1, 1, "y", "regression", 0, 1, ","),
    Columns("x", 0, 1, "y", "regression", 1, 2, "", ","),
]


def piece(rng: np.random.Generator, c: Columns) -> bytes:
    """Mostly good lines, now and then anything."""
    if rng.random() < 0.1:
        return rng.choice(SIGNS, int(rng.integers(0, 12))).tobytes()
    fields = []
    for i in range(3):
        if c.kind == "category" and i == c.first_label:
            fields.append(LABELS[int(rng.integers(len(LABELS)))])
            continue
        value = float(rng.standard_normal() * 10.0 ** rng.integers(-8, 8))
        form = ("{:.3f}", "{:g}", "{:.17g}", "{:.0f}", "{:.12f}", "{:e}", "+{:.0f}.")[int(rng.integers(7))]
        text = form.format(abs(value) if form[0] == "+" else value)
        text = text.replace("0.", ".") if rng.random() < 0.2 and text[:2] == "0." else text
        fields.append(text.replace(".", c.decimal_point or ".").encode())
    blank = (b" ", b"\t ", c.delimiter.encode() or b"  ")[int(rng.integers(3))]
    return blank.join(fields) + (b"\n", b" \r\n", b"\n\n")[int(rng.integers(3))]


@pytest.mark.thorough
def test_random_lines(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    path = tmp_path / "x.txt"
    good = bad = 0
    for i in range(3000):
        c = FORMS[i % len(FORMS)]
        data = b"".join(piece(rng, c) for _ in range(int(rng.integers(1, 9))))
        path.write_bytes(data)
        wanted = reference(data, c)
        try:
            found = read(path, c, int(rng.choice((5, 30, 10_000))))
        except DataError as error:
            assert wanted is None, (data, c, error)
            bad += 1
        else:
            assert found == wanted, (data, c)
            good += 1
    assert good > 500
    assert bad > 500
