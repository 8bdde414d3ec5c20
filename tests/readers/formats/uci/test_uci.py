"""UCIFastReader: lines to records, label maps, and the orders of CNTK."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.cntk_config.parameters import parse
from cntkpy.readers import create_reader
from cntkpy.readers.common.labels import load_labels
from cntkpy.readers.formats.uci.parameters import classify

Make = Callable[..., Any]
FEATURES = "features=[dim=2;start=1]"
NUMBERED = "".join(f"{i % 3} {i + 1} {i + 0.5}\n" for i in range(24))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(
        text: str | bytes,
        features: str = "dim=1;start=1",
        labels: str | None = None,
        names: str = "0\n1\n2\n",
        precision: str = "double",
        **options: Any,
    ) -> Any:
        path = tmp_path / "data.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if names:
            (tmp_path / "labels.map").write_text(names)
        label = "" if labels is None else f'labels=[{labels};labelMappingFile="{tmp_path}/labels.map"]'
        more = " ; ".join(f"{k}={v}" for k, v in {"randomize": "none", **options}.items())
        return create_reader(
            f'readerType=UCIFastReader ; file="{path}" ; features=[{features}] ; {label} ; {more}', precision
        )

    return made


def epoch(reader: Any, size: int = 1000, number: int = 0, samples: int | None = None, **workers: int) -> list[Any]:
    reader.start_minibatch_loop(size, number, samples, **workers)
    return list(iter(reader.get_minibatch, None))


def rows(reader: Any, name: str = "features") -> list[list[float]]:
    return [row for m in epoch(reader) for row in m.streams[name].reshape(-1, m.streams[name].shape[-1]).tolist()]


def order(minibatches: list[Any]) -> list[list[int]]:
    return [m.streams["features"].ravel().astype(int).tolist() for m in minibatches]


def classes(reader: Any) -> list[int]:
    return [row.index(1.0) for row in rows(reader, "labels")]


# ------------------------------------------------------------------------------------------------- lines


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1 2\n3 4\n", [[1, 2], [3, 4]]),
        ("1 2\n3 4", [[1, 2], [3, 4]]),
        ("1\t2\r\n  3 4 \r\n", [[1, 2], [3, 4]]),
        ("\n \t\r\n1 2\n\n\r\n3 4\n \n", [[1, 2], [3, 4]]),
        ("\ufeff1 2\n", [[1, 2]]),
        ("+1 -2\n", [[1, -2]]),
        ("1e5 2.5e3\n1.5e+2 2E-3\n", [[1e5, 2500], [150, 0.002]]),
        (".5 -.25\n5. 7\n+.125 5.e1\n", [[0.5, -0.25], [5, 7], [0.125, 50]]),
        (".12345678 .123456789012345678\n", [[0.12345678, 0.12345678901234568]]),
        ("0.1234567890123456789 123456789012345678901234567890\n", [[0.12345678901234568, 1.2345678901234568e29]]),
        ("1e-320 1e400\n", [[1e-320, float("inf")]]),
        ("1 2 3 4\n5 6 7\n", [[1, 2], [5, 6]]),
        ("1 2 name\n", [[1, 2]]),
        ("000000001.50000000000 -0\n", [[1.5, 0]]),
    ],
)
def test_lines(make: Make, text: str, found: list[list[float]]) -> None:
    assert rows(make(text, "dim=2")) == found


def test_a_number_too_large_is_told_once_with_its_place(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    reader = make("1 2\n\n1e38 -1e39\n1e400 3\n", "dim=2", precision="float")
    assert rows(reader) == [[1, 2], [float(np.float32(1e38)), -float("inf")], [float("inf"), 3]]
    (record,) = caplog.records
    text = record.getMessage()
    assert text.startswith("'-1e39' is too large for its type, and read as infinite (")
    assert text.endswith("data.txt, line 3, column 6)")


def test_numbers_are_those_of_python(make: Make) -> None:
    rng = np.random.default_rng(5)
    values = rng.standard_normal(3000) * 10.0 ** rng.integers(-30, 30, 3000)
    forms = ["{:.17g}", "{:.3f}", "{:.8e}", "{:.1f}", "{!r}"]
    texts = [forms[i % 5].format(float(v)) for i, v in enumerate(values)]
    texts = [t.replace("0.", ".", 1) if i % 3 == 0 and t.startswith(("0.", "-0.")) else t for i, t in enumerate(texts)]
    lines = "".join(" ".join(texts[i : i + 30]) + "\n" for i in range(0, 3000, 30))
    assert rows(make(lines, "dim=30")) == [[float(t) for t in texts[i : i + 30]] for i in range(0, 3000, 30)]
    single = epoch(make(lines, "dim=30", precision="float"))[0].streams["features"]
    assert single.dtype == np.float32
    assert np.array_equal(single.ravel(), np.array([float(t) for t in texts]).astype(np.float32))


@pytest.mark.parametrize(
    ("text", "features", "labels", "values", "ids"),
    [
        ("2 0.5 1\n0 2 3\n", "dim=2;start=1", "dim=1;start=0;labelDim=3", [[0.5, 1], [2, 3]], [2, 0]),
        ("0.5 1 9 2\n2 3 9 0\n", "dim=2", "start=3;labelDim=3", [[0.5, 1], [2, 3]], [2, 0]),
        ("1 2 3\n", "dim=1;start=2", "start=0", [[3]], [1]),
        ("1 2 3\n", "dim=1;start=0", "start=1;labelDim=7;dim=0", [[1]], [2]),
    ],
)
def test_columns(make: Make, text: str, features: str, labels: str, values: Any, ids: list[int]) -> None:
    assert rows(make(text, features, labels)) == values
    assert classes(make(text, features, labels)) == ids


def test_labels_are_compared_as_text(make: Make) -> None:
    text = "1 1\n1.0 2\n01 3\n+1 4\ncaf\u00e9 5\n-x:,y# 6\n"
    r = make(text, "dim=1;start=1", "start=0;labelDim=2", "+1\n  caf\u00e9 \r\n\n# comment\n01\n-x:,y#\n1.0\n1\n")
    assert classes(r) == [5, 4, 2, 0, 1, 3]
    assert r.streams[1].dim == 6  # labelDim is raised to the labels of the file
    assert r.get_label_mapping("Labels") == {0: "+1", 1: "caf\u00e9", 2: "01", 3: "-x:,y#", 4: "1.0", 5: "1"}
    assert r.get_label_mapping("features") == {}


@pytest.mark.thorough
def test_many_labels(make: Make, tmp_path: Path) -> None:
    names = [f"label{i * 7919 % 5000}" for i in range(5000)]
    text = "".join(f"{name} {i}\n" for i, name in enumerate(names))
    r = make(text, "dim=1;start=1", "start=0", "".join(f"{n}\n" for n in sorted(names)))
    ids = [int(m) for b in epoch(r) for m in b.matrix("labels").argmax(0)]
    assert ids == [sorted(names).index(n) for n in names]


def test_regression_none_and_no_labels(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    text = "0.5 -1 10\n.25 1e2 20\n"
    r = make(text, "dim=1;start=2", "dim=2;start=0;labelType=Regression")
    assert rows(r, "labels") == [[0.5, -1], [0.25, 100]]
    assert [s.name for s in make(text, labels="labelType=none").streams] == ["features"]
    assert not caplog.records
    assert [s.name for s in make(text, traceLevel=1).streams] == ["features"]
    assert "no section of labels" in caplog.text


def test_delimiter_and_decimal_point(make: Make) -> None:
    text = "1;0,25; a.b\n;2;-,5e1;c\n;;\n"
    r = make(text, "dim=2", "start=2", "a.b\nc\n", customDelimiter='";;"', customDecimalPoint='","')
    assert rows(r) == [[1, 0.25], [2, -5]]
    assert classes(r) == [0, 1]
    assert rows(make("1,2\n,3,,4,\n", "dim=2", customDelimiter='","')) == [[1, 2], [3, 4]]
    assert rows(make("1.2.3\n", "dim=3", customDelimiter=".", customDecimalPoint='","')) == [[1, 2, 3]]


def test_sections_are_told_apart() -> None:
    text = 'file="dim=3" ; b=[dim=1] ; A=[dim=2] ; z=[labelDim=3] ; Y=[sectionType=labels;dim=1] ; x=[other=1]'
    found = classify(parse(text))
    assert (found.features, found.labels) == (["A", "b"], ["Y", "z"])


def test_further_sections_are_not_read_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "d").write_text("1 2 3\n")
    text = f'readerType=UCIFastReader ; file="{tmp_path}/d" ; features=[dim=2] ; '
    create_reader(f"{text} stored=[dim=2;sectionType=CategoryLabels]")
    assert not caplog.records
    assert [s.name for s in create_reader(f"{text} more=[dim=1;start=2] ; age=[dim=1]").streams] == ["age"]
    assert "'age', the first in alphabetical order; not read: 'features', 'more'" in caplog.text


def test_blocks_of_any_size(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(f"{i} {'9' * (i * 7 % 50 + 1)}" + "\n \n" * (i % 3 == 0) for i in range(200))
    wanted = rows(make(text, "dim=2"))
    from cntkpy.readers.formats.uci import text as module

    for block, chunk in ((16, 10), (64, 100), (1000, 300)):
        monkeypatch.setattr(module, "_BLOCK_BYTES", block)
        columns = module.Columns("features", 0, 2)
        data = module.UCIText(str(tmp_path / "data.txt"), columns, np.float64, chunk_size=chunk)
        found = [data.load_chunk(c).streams["features"].values.reshape(-1, 2) for c in range(data.table.num_chunks)]
        assert len(found) > 1
        assert np.concatenate(found).tolist() == wanted
        some = np.array([5, 199, 0, 77, 5, 6])
        picked = data.load_sequences(some).streams["features"]
        assert [picked.values[s : s + 2].tolist() for s in picked.starts] == [wanted[i] for i in some]


# ------------------------------------------------------------------------------------------------- label maps


def test_label_map_is_made_in_order_of_appearance(make: Make, tmp_path: Path) -> None:
    text = "b 1\na 2\nb 3\nc 4\n"
    for random in ("auto", "none"):
        make(text, labels="start=0", names="", allowMapCreation="true", randomize=random).close()
        assert (tmp_path / "labels.map").read_bytes() == b" b \n a \n c \n"
        assert list(load_labels(str(tmp_path / "labels.map")).ids) == [b"b", b"a", b"c"]
        assert classes(make(text, labels="start=0", names="")) == [0, 1, 0, 2]
        (tmp_path / "labels.map").unlink()


def test_label_map_that_exists_is_used(make: Make, tmp_path: Path) -> None:
    r = make("2 1\n1 1\n", labels="start=0", names="0\n1\n2\n", allowMapCreation="true")
    assert classes(r) == [2, 1]
    assert (tmp_path / "labels.map").read_bytes() == b"0\n1\n2\n"


# ------------------------------------------------------------------------------------------------- order

# of 24 records, as CNTK visits them in the first three epochs; recorded from its log
EPOCHS = [
    [6, 7, 5, 2, 14, 10, 9, 13, 4, 20, 1, 11, 16, 3, 24, 8, 21, 22, 12, 18, 15, 19, 17, 23],
    [6, 7, 5, 2, 14, 10, 9, 13, 4, 20, 1, 11, 16, 3, 24, 8, 21, 22, 12, 18, 15, 19, 17, 23],
    [2, 3, 4, 5, 10, 1, 12, 8, 16, 6, 19, 11, 20, 18, 9, 13, 7, 24, 17, 22, 15, 14, 21, 23],
]


@pytest.mark.parametrize("size", [1, 4, 5, 24, 100])
def test_random_order_is_that_of_the_original(make: Make, size: int) -> None:
    r = make(NUMBERED, randomize="Auto")
    for number, wanted in enumerate(EPOCHS):
        for samples in (None, 24):
            found = order(epoch(r, size, number, samples))
            assert [x for m in found for x in m] == wanted
            assert [len(m) for m in found] == [min(size, 24 - i) for i in range(0, 24, size)]


def test_partial_minibatches_stop_at_the_end_of_file_and_epoch(make: Make) -> None:
    r = make(NUMBERED)
    assert [len(m) for m in order(epoch(r, 5))] == [5, 5, 5, 5, 4]
    second = order(epoch(r, 4, 1, 30))
    assert [len(m) for m in second] == [4, 4, 4, 4, 2, 4, 4, 4]
    assert [x for m in second for x in m] == [*range(7, 25), *range(1, 13)]
    assert order(epoch(r, 100, 5)) == [list(range(1, 25))]


def test_full_minibatches(make: Make) -> None:
    r = make(NUMBERED, minibatchMode="Full")
    for number in (0, 1):  # without a size of the epoch: the rest of the file is skipped
        assert order(epoch(r, 5, number)) == [list(range(i, i + 5)) for i in (1, 6, 11, 16)]
    # with one: made a multiple of the minibatch, running on over the end of the file
    assert order(epoch(r, 4, 2, 10)) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    assert order(epoch(r, 5, 1, 20)) == [[21, 22, 23, 24, 1], [2, 3, 4, 5, 6], [7, 8, 9, 10, 11], [12, 13, 14, 15, 16]]
    auto = make(NUMBERED, minibatchMode="Full", randomize="auto")
    for number, wanted in enumerate(EPOCHS):
        assert [x for m in order(epoch(auto, 5, number)) for x in m] == wanted[:20]


def test_an_explicit_range(make: Make) -> None:
    r = make(NUMBERED, randomize=8)
    seen = [x for k in range(3) for m in order(epoch(r, 2, k, 8)) for x in m]
    whole = [x for m in order(epoch(r, 4)) for x in m]
    assert seen == whole
    assert [sorted(whole[i : i + 8]) for i in (0, 8, 16)] == [list(range(i, i + 8)) for i in (1, 9, 17)]
    assert whole[:8] == [x - 8 for x in whole[8:16]] != list(range(1, 9))  # blocks 0 and 1 have the same seed
    assert [x for m in order(epoch(make(NUMBERED, randomize=0))) for x in m] == list(range(1, 25))


def test_an_epoch_larger_than_the_data(make: Make) -> None:
    r = make(NUMBERED, randomize="auto")
    found = [x for k in range(4) for m in order(epoch(r, 4, k, 30)) for x in m]
    sweeps = [found[i : i + 24] for i in range(0, 120, 24)]
    assert [sorted(s) for s in sweeps] == [list(range(1, 25))] * 5
    assert sweeps[0] == EPOCHS[0]
    assert sweeps[2] == EPOCHS[2]


def test_workers(make: Make) -> None:
    whole = order(epoch(make(NUMBERED, randomize="auto"), 5))
    parts = [order(epoch(make(NUMBERED, randomize="auto"), 5, worker_rank=k, number_of_workers=3)) for k in range(3)]
    assert [a + b + c for a, b, c in zip(*parts, strict=True)] == whole
    assert [len(m) for m in parts[0]] == [1, 1, 1, 1, 1]
    first = [epoch(make(NUMBERED), 1, worker_rank=k, number_of_workers=2)[0] for k in (0, 1)]
    assert [m.num_samples for m in first] == [0, 1]


@pytest.mark.parametrize("random", ["none", "auto", "6"])
def test_going_on_in_the_middle(make: Make, random: str) -> None:
    r = make(NUMBERED, randomize=random)
    r.start_minibatch_loop(3, 1, 12)
    r.get_minibatch()
    state = r.get_state()
    wanted = order(list(iter(r.get_minibatch, None)))
    other = make(NUMBERED, randomize=random)
    other.set_state(state)
    assert order(list(iter(other.get_minibatch, None))) == wanted
    assert len(wanted) == 3


def test_one_line_per_file_and_read_ahead(make: Make) -> None:
    r = make(NUMBERED, oneLinePerFile="true", nbruttsineachrecurrentiter=7, prefetch="false")
    assert [len(m) for m in order(epoch(r, 100))] == [7, 7, 7, 3]
    assert r.data_end


def test_layout_is_one_frame_per_sequence(make: Make) -> None:
    (m,) = epoch(make("1 2\n3 4\n5 6\n"))
    assert (m.layout.T, m.layout.S, m.layout.sequences.tolist()) == (1, 3, [[i, i, 0, 1] for i in range(3)])
    assert m.keys == [0, 1, 2]


def test_data_that_do_not_fit_into_memory(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cntkpy.readers.formats.uci import text
    from cntkpy.readers.pipeline import store

    monkeypatch.setattr(store, "DEFAULT_MEMORY", 2000)
    monkeypatch.setattr(
        store.ChunkStore.__init__, "__kwdefaults__", {**store.ChunkStore.__init__.__kwdefaults__, "memory": 2000}
    )
    monkeypatch.setattr(
        text.UCIText.__init__, "__kwdefaults__", {**text.UCIText.__init__.__kwdefaults__, "chunk_size": 500}
    )
    lines = "".join(f"{i % 3} {i + 1} {i + 0.5}\n" for i in range(1000))
    for random in ("auto", "none", "100"):
        found = [x for m in order(epoch(make(lines, labels="start=0", randomize=random), 10)) for x in m]
        assert sorted(found) == list(range(1, 1001))
        assert (found == sorted(found)) == (random == "none")
