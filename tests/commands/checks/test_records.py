"""`check --data` reads the first records by the readers of the run, so that it says no less than the run."""

from __future__ import annotations

import io
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config import UserError
from cntkpy.readers import create_reader
from cntkpy.readers.common.beginnings import BYTES_PER_RECORD, LEAST_BYTES, Beginnings, first_records
from cntkpy.readers.formats.htk.archive import write_archive

CTF = "readerType=CNTKTextFormatReader ; file=d.ctf ; input=[features=[dim=2;format=dense];labels=[dim=1;format=dense]]"
UCI = "readerType=UCIFastReader ; file=d.txt ; features=[start=0;dim=2] ; labels=[start=2;dim=1;labelDim=2;labelType=category;labelMappingFile=names.txt]"  # noqa: E501
HTK = "readerType=HTKMLFReader ; features=[scpFile=d.scp;dim=2] ; labels=[mlfFile=d.mlf;labelMappingFile=states;labelDim=2]"  # noqa: E501
IMAGE = "readerType=ImageReader ; file=d.map ; features=[width=2;height=2;channels=1] ; labels=[labelDim=3]"
CSV = "deserializers=([type=CsvDeserializer;file=d.csv;input=[features=[columns=a:b;dim=2];labels=[columns=c;dim=1]]])"
TAR = "deserializers=([type=TarDeserializer;file=d*.tar;input=[features=[member=txt;dim=2]]])"
KALDI = 'deserializers=([type=KaldiFeatureDeserializer;input=[features=[rx="ark:d.ark";dim=2]]])'
BASE64 = (
    "deserializers=([type=Base64ImageDeserializer;file=d.b64;input=[features=[transforms=()];labels=[labelDim=3]]])"
)
LM = 'readerType=LMSequenceReader ; file=d.lm ; mode=softmax ; labelIn=[labelType=category;labelMappingFile=words;labelDim=3;beginSequence="</s>";endSequence="</s>"] ; labels=[labelType=category;labelMappingFile=words;labelDim=3]'  # noqa: E501


def config(reader: str) -> str:
    return (
        "command = train\nmodelPath = m\n"
        "train = [ action = train ; SimpleNetworkBuilder = [ layerSizes = 2:1 ; trainingCriterion = SquareError ]\n"
        " SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerSample = 0.1 ]\n"
        f" reader = [ {reader} ] ]\n"
    )


def utterances(folder: Path, count: int) -> None:
    """Write HTK features d.ark of utterances u0, u1, ... with two frames each, and their list d.scp."""
    named = [(f"u{i}.mfc", np.ones((2, 2), np.float32)) for i in range(count)]
    write_archive(str(folder / "d.ark"), named, str(folder / "d.scp"))


def entries(names: Iterable[str], state: str = "a") -> str:
    """Labels of utterances with two frames each."""
    return "#!MLF!#\n" + "".join(f'"*/{name}.lab"\n0 2 {state}\n.\n' for name in names)


def error_of_run(reader: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The message with which the reader of a run ends on its first minibatches; "" if it does not."""
    monkeypatch.chdir(folder)
    try:
        made = create_reader(reader)
        made.start_minibatch_loop(2, 0)
        while made.get_minibatch() is not None:
            pass
    except UserError as error:
        return error.message
    return ""


CASES = {
    "a blank behind the pipe": (CTF, {"d.ctf": "| labels 1 | features 1 2\n"}, "invalid character (a blank)"),
    "no number": (CTF, {"d.ctf": "|labels 1 |features 1 -.5\n"}, "A value of"),
    "several samples in frame mode": (
        CTF + " ; frameMode=true",
        {"d.ctf": "1 |features 1 2 |labels 1\n1 |features 3 4 |labels 0\n"},
        "Detected a non-frame sequence",
    ),
    "a short row of a table": (UCI, {"d.txt": "1 2 a\n1\n", "names.txt": "a\nb\n"}, "d.txt"),
    "a class that the list lacks": (UCI, {"d.txt": "1 2 c\n", "names.txt": "a\nb\n"}, "label found in data"),
    "a list of pictures with commas": (IMAGE, {"d.map": "a.png,1\n"}, "d.map"),
    "a picture that is missing": (IMAGE, {"d.map": "a.png\t1\n"}, "a.png"),
    "a cell that is no number": (CSV, {"d.csv": "a,b,c\n1,2,3\n4,x,6\n"}, "d.csv"),
    "no number in an archive": (KALDI, {"d.ark": "u1  [ 1 x ]\n"}, "d.ark"),
    "a pattern that no archive fits": (TAR, {}, "d*.tar"),
    "damaged base64": (BASE64, {"d.b64": "0\t1\t!!!\n"}, "d.b64"),
    "a word that the list lacks": (LM, {"d.lm": "</s> one two </s>\n", "words": "</s>\none\nthree\n"}, "two"),
}


@pytest.mark.parametrize("name", CASES)
def test_no_less_than_the_run(cntkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """W6, U5."""
    reader, files, message = CASES[name]
    got = cntkpy("check", "--data", "--select", "CK06,CK07", "main.cntk", files=files | {"main.cntk": config(reader)})
    assert got.code == 2 and message in got.out, got.out
    assert error_of_run(reader, tmp_path, monkeypatch), "the run reads it"


def data_findings(cntkpy, reader: str, files: dict[str, str], *words: str) -> str:
    """What `check --data` says about data."""
    chosen = ("--select", "CK06,CK07", "--quiet")
    return cntkpy("check", "--data", *chosen, *words, "main.cntk", files=files | {"main.cntk": config(reader)}).out


@pytest.mark.parametrize("state", ["a", "c"])
def test_labels_of_speech(cntkpy, tmp_path: Path, state: str) -> None:
    utterances(tmp_path, 3)
    files = {"states": "a\nb\n", "d.mlf": entries(["u0", "u1", "u2"], state)}
    found = data_findings(cntkpy, HTK, files)
    assert ("the state 'c' is not in the state list" in found) == (state == "c"), found


def test_labels_in_another_order(cntkpy, tmp_path: Path) -> None:
    """The first utterances of one file are not those of the other: nothing can be said from the beginnings."""
    count = LEAST_BYTES // 20
    utterances(tmp_path, 3)
    mixed = [*(f"other{i}" for i in range(count)), "u0", "u1", "u2"]
    assert data_findings(cntkpy, HTK, {"states": "a\nb\n", "d.mlf": entries(mixed)}, "--records", "1") == ""


@pytest.mark.thorough
@pytest.mark.parametrize(("line", "found"), [(10, True), (3_000_000, False)])
def test_a_large_file_takes_no_longer(cntkpy, tmp_path: Path, line: int, found: bool) -> None:
    """What is read grows with the records and not with the file: an error far behind them is not found."""
    good, bad = b"|features 1 2 |labels 1\n", b"|features 1 2 3 |labels 1\n"
    lines = 4_000_000
    text = good * (line - 1) + bad + good * (lines - line)
    (tmp_path / "d.ctf").write_bytes(text)
    data_findings(cntkpy, CTF, {}, "--records", "1")  # modules are imported
    begin = time.process_time()
    got = data_findings(cntkpy, CTF, {}, "--records", "20")
    assert ("d.ctf" in got) == found, got
    assert time.process_time() - begin < 1.0, "seconds; all lines take about 2"


def test_how_much_of_a_text_is_read(tmp_path: Path) -> None:
    lines = b"".join(b"%d |x 1\n%d |x 2\n" % (i, i) for i in range(400_000))
    (tmp_path / "d.ctf").write_bytes(lines)
    section = f'file="{tmp_path}/d.ctf" ; randomize=none ; input=[x=[dim=1;format=dense]]'
    for records in (1, 40):
        with first_records(records) as limits:
            reader = create_reader(section)
        limit = max(LEAST_BYTES, BYTES_PER_RECORD * records)
        whole = lines[:limit].rpartition(b"\n")[0].splitlines()
        last = whole[-1].split(b" ")[0]
        assert reader.samples_per_sweep == len(whole) - sum(one.startswith(last + b" ") for one in whole)
        assert [Path(path).name for path in limits.cut] == ["d.ctf"]


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        (b"a\nb\nc", b"a\nb\n"),
        (b"1 |x 1\n1 |x 2\n2 |x 3\n2 |x 4\n", b"1 |x 1\n1 |x 2\n"),
        (b"1 |x 1\n|x 2\n2 |x 3\n|x 4\n", b"1 |x 1\n|x 2\n"),
        (b"1 |x 1\n1 |x 2\n", b"1 |x 1\n1 |x 2\n"),
        (b"|x 1\n|x 2\n|x", b"|x 1\n|x 2\n"),
        (b'#!MLF!#\n"a"\n0 1 s\n.\n"b"\n0 1', b'#!MLF!#\n"a"\n0 1 s\n.\n'),
        (b'a,b\n1,"x\ny"\n2,"u\nv', b'a,b\n1,"x\ny"\n'),
        (b"a line without an end", b"a line without an end"),
    ],
)
def test_a_beginning_ends_with_a_record(text: bytes, beginning: bytes) -> None:
    limits = Beginnings(1)
    limits.limit = len(text) - 1
    assert limits.text_of("t", io.BytesIO(text)) == beginning
    limits.limit = len(text)
    assert limits.text_of("t", io.BytesIO(text)) is None


def test_utterances_that_are_left_out(cntkpy, tmp_path: Path) -> None:
    """As the run says; where the beginnings alone were read, their labels may follow."""
    utterances(tmp_path, 3)
    files = {"states": "a\nb\n", "d.mlf": entries(["u2", "u0"])}
    text = "warning: 1 of 3 utterances are left out: 1 without labels in 'labels': u1"
    assert text in data_findings(cntkpy, HTK, files)
    filler = entries([f"{'x' * 100}{i}" for i in range(LEAST_BYTES // 100)]).removeprefix("#!MLF!#\n")
    files["d.mlf"] += filler
    assert data_findings(cntkpy, HTK, files, "--records", "1") == ""


def test_nothing_is_written(cntkpy, tmp_path: Path) -> None:
    """Neither an index, nor the list of classes, nor a cache."""
    reader = UCI.replace("names.txt]", "names.txt;labelDim=2] ; writerType=BinaryWriter ; wfile=cache.bin")
    data_findings(cntkpy, reader, {"d.txt": "1 2 a\n3 4 b\n"})
    data_findings(cntkpy, CTF + " ; cacheIndex=true", {"d.ctf": "|features 1 2 |labels 1\n"})
    assert {path.name for path in tmp_path.iterdir()} == {"main.cntk", "d.txt", "d.ctf"}


def test_tables_are_read_as_far_as_records_need(cntkpy, tmp_path: Path) -> None:
    """One row group of a Parquet file: only its first rows are decoded."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = 300_000
    values = [[float(i), 1.0] for i in range(rows)]
    values[rows - 1] = [1.0]
    pq.write_table(pa.table({"features": values, "labels": [1.0] * rows}), tmp_path / "d.parquet")
    reader = "deserializers=([type=ParquetDeserializer;file=d.parquet;input=[features=[dim=2];labels=[dim=1]]])"
    assert data_findings(cntkpy, reader, {}) == ""
    values[3] = [1.0]
    pq.write_table(pa.table({"features": values, "labels": [1.0] * rows}), tmp_path / "d.parquet")
    assert "row 3" in data_findings(cntkpy, reader, {})


def test_modules_are_not_imported(cntkpy) -> None:
    """A reader in a module is read with --import-modules only."""
    module = "from cntkpy.readers.user.reader import UserReader\nraise SystemExit('imported')\n"
    reader = "readerType=Mine ; module=mine"
    assert data_findings(cntkpy, reader, {"mine.py": module}) == ""


@pytest.mark.parametrize("found", [True, False])
def test_long_files_with_other_keys_are_read_alone(cntkpy, tmp_path: Path, found: bool) -> None:
    """The beginnings of two files that are joined have no key in common; an error in one is found nevertheless."""
    lines = LEAST_BYTES // 8
    (tmp_path / "a.ctf").write_text("".join(f"{i} |features 1 2\n" for i in range(lines)))
    labels = [f"{i} |labels 1\n" for i in reversed(range(lines))]
    labels[0] = "7 |labels x\n" if found else labels[0]
    (tmp_path / "b.ctf").write_text("".join(labels))
    part = "[type=CNTKTextFormatDeserializer;file=%s.ctf;input=[%s=[dim=%d;format=dense]]]"
    reader = f"deserializers=({part % ('a', 'features', 2)}:{part % ('b', 'labels', 1)})"
    out = data_findings(cntkpy, reader, {}, "--records", "1")
    assert ("b.ctf" in out) == found and (out != "") == found, out


def test_a_reader_of_a_module(cntkpy) -> None:
    """With --import-modules its first records are read, too."""
    module = "def source(**options):\n    raise RuntimeError('no such device')\n"
    reader = "readerType=UserMinibatchSource ; module=broken_source ; class=source"
    assert data_findings(cntkpy, reader, {"broken_source.py": module}) == ""
    chosen = ("--data", "--import-modules", "--select", "CK07", "--quiet")
    assert "no such device" in cntkpy("check", *chosen, "main.cntk").out


def test_a_stream_that_the_file_lacks(cntkpy) -> None:
    """W7: the run says what `check --data` says: the names in the file, and the nearest."""
    reader = CTF.replace("features=[", "features=[alias=wirds;")
    files = {"d.ctf": "|words 1 2 |labels 1\n", "main.cntk": config(reader)}
    files["main.cntk"] = files["main.cntk"].replace("SquareError ]", "SquareError ; evalCriterion = SquareError ]")
    said = "'d.ctf' has no values called 'wirds'"
    error = "The input file (d.ctf) has no values called 'wirds', the alias of the input 'features'"
    got = cntkpy("check", "--data", "main.cntk", files=files)
    assert got.code == 2 and f"{error} - it has: words, labels; did you mean 'words'?" in got.out, got.out
    got = cntkpy("configFile=main.cntk")
    assert got.code == 1 and error in got.err and f"{said}" in got.err, got.err


TWO = (
    "deserializers=([type=CNTKTextFormatDeserializer;file=a.ctf;input=[features=[dim=2;format=dense]]]"
    ":[type=CNTKTextFormatDeserializer;file=b.ctf;input=[labels=[dim=1;format=dense]]])"
)


def test_sequences_of_different_lengths_in_two_files(cntkpy) -> None:
    """W6: only the reader sees both files; the run ends at the first minibatch."""
    files = {
        "a.cntk": config(TWO).replace("SquareError ]", "SquareError ; evalCriterion = SquareError ]"),
        "a.ctf": "0 |features 1 2\n0 |features 1 2\n",
        "b.ctf": "0 |labels 1\n0 |labels 1\n0 |labels 1\n",
    }
    got = cntkpy("check", "--data", "a.cntk", files=files)
    assert "sequence 0 has 3 samples of 'labels', 2 of 'features'" in got.out
    assert got.code == 2


@pytest.mark.parametrize(("lines", "records", "told"), [(3, 3, False), (5, 3, True), (300, 100, True)])
def test_the_summary_says_that_only_the_beginning_was_read(lines: int, records: int, told: bool, cntkpy) -> None:
    files = {
        "a.cntk": config(CTF).replace("SquareError ]", "SquareError ; evalCriterion = SquareError ]"),
        "d.ctf": "|features 1 2 |labels 1\n" * lines,
    }
    got = cntkpy("check", "--data", "--records", str(records), "a.cntk", files=files)
    ending = f"; only the beginning of the data was read (--records {records})"
    assert got.out == "no problems in 1 configuration" + ending * told + "\n"


def test_a_row_that_is_longer_than_the_beginning(cntkpy) -> None:
    """W6: the header alone was read, and the file was said to have no rows."""
    text = config(CSV).replace("SquareError ]", "SquareError ; evalCriterion = SquareError ]")
    row = "1,2,3," + ",".join(["x" * (LEAST_BYTES // 16)] * 20) + "\n"
    files = {"a.cntk": text, "d.csv": "a,b,c," + ",".join(f"n{i}" for i in range(20)) + "\n" + row * 3}
    got = cntkpy("check", "--data", "--records", "1", "a.cntk", files=files)
    assert got.out == "no problems in 1 configuration; only the beginning of the data was read (--records 1)\n"
