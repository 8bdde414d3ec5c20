"""`create_reader`, the reader interface of the manual, for every kind of reader: matrices, classes, epochs, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from cntkpy.cntk_config import parse
from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.commands.tools.convert import convert
from cntkpy.readers import DataError, Minibatch, MinibatchData, StreamInformation, UserMinibatchSource, create_reader
from cntkpy.readers.formats.htk.archive import write_archive
from cntkpy.trainers.step.reading import CountedReader


class Points(UserMinibatchSource):
    """Three samples, again and again."""

    def __init__(self, count: int = 3):
        self.x, self.count = StreamInformation("x", 0, "dense", np.float32, (1,)), count
        super().__init__()

    def stream_infos(self):
        return [self.x]

    def next_minibatch(self, num_samples, number_of_workers=1, worker_rank=0, device=None):
        return {self.x: MinibatchData(np.arange(3, dtype=np.float32)[:, None], 3, 3, True)}


CTF = "file=a.ctf;input=[x=[dim=2;format=dense];y=[dim=3;format=sparse]]"
WORDS, AB = {0: "#", 1: "a", 2: "b"}, {0: "a", 1: "b"}
READERS: dict[str, tuple[str, str, list[list[float]], dict[str, dict[int, str]]]] = {
    # a section, a stream, its matrix in the first minibatch of 4 (dim x columns), names of classes
    "text": (CTF, "x", [[1, 5, 3, 7], [2, 6, 4, 8]], {"x": {}}),
    "composite": (
        f"deserializers=([type=CNTKTextFormatDeserializer;{CTF}])", "y", [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 5, 0]], {},
    ),
    "columns": (
        "readerType=UCIFastReader;file=d.txt;randomize=none;features=[start=1;dim=2]\n"
        "labels=[start=0;dim=1;labelType=category;labelDim=2;labelMappingFile=d.map]",
        "labels", [[1, 0, 1], [0, 1, 0]], {"labels": {0: "cat", 1: "dog"}, "features": {}},
    ),
    "binary": ("readerType=BinaryReader;file=d.bin", "y", [[1, 0, 1], [0, 1, 0]], {"y": {0: "cat", 1: "dog"}}),
    "sentences": (
        "readerType=SequenceReader;file=text;wordclass=classes;features=[dim=0]\n"
        "labelIn=[labelType=category;labelMappingFile=no];labels=[labelType=nextWord;labelMappingFile=no]",
        "features", [[1, 0, 0], [0, 1, 0], [0, 0, 1]], {"features": WORDS, "labelIn": WORDS, "labels": WORDS},
    ),
    "columns of words": (
        "readerType=LUSequenceReader;file=tagged;features=[dim=0]\n"
        "labelIn=[labelType=category;token=words];labels=[labelType=category;token=tags]",
        "labels", [[1, 0], [0, 1]], {"features": AB, "labelIn": AB, "labels": {0: "X", 1: "Y"}},
    ),
    "speech": (
        "readerType=HTKMLFReader;frameMode=false;features=[scpFile=u.scp;dim=1]\n"
        "labels=[mlfFile=u.mlf;labelDim=2;labelMappingFile=states]",
        "labels", [[1, 0], [0, 1]], {"labels": {0: "s", 1: "t"}, "features": {}},
    ),
    "frames": (
        "readerType=HTKMLFReader;features=[scpFile=u.scp;dim=1];labels=[mlfFile=u.mlf;labelDim=2]",
        "features", [[1, 2, 3, 4]], {"labels": {}},
    ),
    "deserializers of speech": (
        "readerType=HTKDeserializers;frameMode=false;readMethod=none;features=[scpFile=u.scp;dim=1]\n"
        "labels=[mlfFile=u.mlf;labelDim=2;labelMappingFile=states]",
        "features", [[1, 3, 2, 4]], {"labels": {0: "s", 1: "t"}},
    ),
    "user": (f"readerType=UserMinibatchSource;module={__name__};class=Points", "x", [[0, 1, 2]], {"x": {}}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or __import__(__name__))
    monkeypatch.setattr(sys.modules[__name__], "Points", Points)
    for name, text in {
        "a.ctf": "0 |x 1 2 |y 0:1\n0 |x 3 4 |y 2:5\n1 |x 5 6 |y 1:1\n2 |x 7 8 |y\n",
        "d.txt": "cat 1 2\ndog 3 4\ncat 5 6\n",
        "d.map": "cat\ndog\n",
        "text": "# a b #\n# b b a #\n",
        "classes": "0 9 # 0\n1 5 a 1\n2 3 b 1\n",
        "tagged": "a X\nb Y\n\nb X\n",
        "words": "a\nb\n",
        "tags": "X\nY\n",
        "states": "s\nt\n",
        "u.mlf": '#!MLF!#\n"*/u.lab"\n0 100000 s 0\n100000 200000 t 1\n.\n"*/v.lab"\n0 200000 t 1\n.\n',
    }.items():
        Path(name).write_text(text)
    write_archive("u.ark", {"u": np.array([[1.0], [2]]), "v": np.array([[3.0], [4]])}.items(), "u.scp")


def section_of(kind: str) -> str:
    if kind == "binary":
        columns = READERS["columns"][0].replace("labels=[", "y=[")
        Path("m.cntk").write_text(f"c=[reader=[\n{columns}\n]]\n")
        assert convert(["configFile=m.cntk", "c"], "d.bin", ("features:2", "y:2:class"), quiet=True) == 0
    return READERS[kind][0] + ("" if "randomize" in READERS[kind][0] else "\nrandomize=none")


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("made", ["text", "section"])
def test_every_reader(kind: str, made: str) -> None:
    text, (_, stream, matrix, names) = section_of(kind), READERS[kind]
    reader: Any = create_reader(text if made == "text" else parse(text))
    with pytest.raises(ValueError, match=r"before start_minibatch_loop") if kind != "user" else _nothing():
        reader.get_minibatch()
    reader.start_minibatch_loop(4, 0)
    minibatch = reader.get_minibatch()
    found = minibatch.matrix(stream)
    assert scipy.sparse.issparse(found) == next(s.sparse for s in reader.streams if s.name == stream)
    if scipy.sparse.issparse(found):
        assert found.format == "csc"
        found = found.toarray()
    assert found.tolist() == matrix
    with pytest.raises(RuntimeError, match="No stream found matching given name 'zz'"):
        minibatch.matrix("zz")
    while not reader.data_end:
        reader.get_minibatch()
    assert reader.get_minibatch() is None
    for name, mapping in names.items():
        assert reader.get_label_mapping(name) == mapping, name
    reader.close()


class _nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> bool:
        return True


@pytest.mark.parametrize("kind", ["text", "columns", "sentences", "speech", "user"])
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((0, 0), "Requested minibatch size must be > 0"),
        ((2.5, 0), "must be a whole number, not 2.5"),
        ((2, -1), "The number of an epoch must be at least 0"),
        ((2, 0, 0), "must be at least 1, not 0"),
        ((2, 0, None, 2, 2), "worker 2 of 2"),
        ((2, 0, None, -1, 2), "worker -1 of 2"),
    ],
)
def test_wrong_epochs(kind: str, arguments: tuple[Any, ...], part: str) -> None:
    reader = create_reader(section_of(kind))
    with pytest.raises(ValueError, match=part):
        reader.start_minibatch_loop(*arguments)
    for state in (None, {}):
        with pytest.raises(ValueError, match=r"[Cc]heckpoint|position"):
            reader.set_state(state)  # type: ignore[arg-type]


def test_wrong_descriptions() -> None:
    for section in (None, 5, {"readerType": "BinaryReader"}):
        with pytest.raises(ValueError, match="a reader is described by a section or its text"):
            create_reader(section)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="several readers side by side are not supported"):
        create_reader("readers=a:b;a=[readerType=BinaryReader;file=d.bin];b=[readerType=BinaryReader;file=d.bin]")
    with pytest.raises(ValueError, match="precision must be float or double, not 'half'"):
        create_reader(CTF, "half")


@pytest.mark.parametrize("name", ["LibSVMBinaryReader", "dssmreader", "SparsePCReader"])
def test_readers_that_only_cntk_has(name: str) -> None:
    with pytest.raises(ConfigError, match=f"the reader '{name}' is not supported") as caught:
        create_reader(f"readerType={name} ; file=x")
    assert "CNTKTextFormatReader" in (caught.value.diagnostic.hint or "")


def test_gaps_are_columns_if_asked_for() -> None:
    """Columns by time step, and within a step by slot; sequence 1 has no second step."""
    reader = create_reader(CTF + "\nrandomize=false")
    reader.start_minibatch_loop(3, 0)
    minibatch = reader.get_minibatch()
    assert isinstance(minibatch, Minibatch)
    assert minibatch.matrix("x", gaps=True).tolist() == [[1, 5, 3, 0], [2, 6, 4, 0]]
    assert minibatch.matrix("y", gaps=True).toarray().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 5, 0]]
    assert minibatch.matrix("y").indptr.tolist() == [0, 1, 2, 3]


def test_the_source_of_a_user_can_do_no_harm() -> None:
    reader = create_reader(READERS["user"][0])
    with pytest.raises(DataError, match=r"this is not the position|'at'|Points"):
        reader.start_minibatch_loop(2, 0)
        reader.set_state({"source": {"at": 1}})


class Former:
    """A reader that somebody wrote for a version before 0.2."""

    streams, samples_per_sweep = (), 3

    def __init__(self, section: Any, precision: str):
        self.at = 0

    def start_minibatch_loop(self, *arguments: Any) -> None:
        self.at = 0

    def get_minibatch(self) -> None:
        self.at += 1

    def state(self) -> dict[str, Any]:
        return {"at": self.at}

    def restore(self, state: dict[str, Any]) -> None:
        self.at = state["at"]

    def get_label_mapping(self, name: str) -> dict[int, str]:
        return {}

    def close(self) -> None:
        pass


def test_a_plug_in_may_have_the_former_names_of_its_position() -> None:
    reader: Any = create_reader(f"readerType = Former ; module = {__name__}")
    counted = CountedReader(reader)
    counted.get_minibatch()
    state = counted.get_state()
    assert state == {"at": 1, "last_slots": 0}
    counted.get_minibatch()
    counted.set_state(state)
    assert reader.at == 1


def test_the_former_names_of_a_position_are_those_of_now(tmp_path: Path) -> None:
    path = tmp_path / "t.ctf"
    path.write_text("|x 1\n|x 2\n|x 3\n")
    reader: Any = create_reader(f"file = {path} ; randomize = none ; input = [ x = [ dim = 1 ; format = dense ] ]")
    reader.start_minibatch_loop(1, 0)
    reader.get_minibatch()
    assert reader.state() == reader.get_state()
    state = reader.state()
    second = reader.get_minibatch().streams["x"].tolist()
    reader.restore(state)
    assert reader.get_minibatch().streams["x"].tolist() == second == [[[2]]]
    reader.close()
