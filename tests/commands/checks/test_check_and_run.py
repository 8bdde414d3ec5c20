"""`check --data` and the run say the same of broken data (W6): an error where the run ends, else a warning at most."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from cntkpy.cntk_config import UserError
from cntkpy.readers import create_reader

from .test_records import BASE64, CSV, CTF, HTK, IMAGE, KALDI, LM, UCI, config, entries, utterances

PICTURE = (Path(__file__).parents[3] / "tools" / "fuzz" / "seeds" / "image.png").read_bytes()
SPARSE = CTF.replace("dense", "sparse", 1)
TWO = (
    "deserializers=([type=CNTKTextFormatDeserializer;file=d.ctf;input=[features=[dim=2;format=dense]]]"
    ":[type=CNTKTextFormatDeserializer;file=e.ctf;input=[labels=[dim=1;format=dense]]])"
)
PARQUET = CSV.replace("Csv", "Parquet").replace("d.csv", "d.parquet")
BINARY = "readerType=BinaryReader;file=d.bin"
CBF = "readerType=CNTKBinaryReader;file=d.cbf;input=[features=[dim=2];labels=[dim=1]]"
TAR = "deserializers=([type=TarDeserializer;file=d.tar;input=[features=[member=txt;dim=2];labels=[member=cls;dim=2;format=sparse]]])"  # noqa: E501
ALIGNED = (
    'deserializers=([type=KaldiFeatureDeserializer;input=[features=[rx="ark:d.ark";dim=2]]]'
    ':[type=KaldiLabelDeserializer;input=[labels=[mlfFile="ark:l.ark";labelDim=2]]])'
)


def archive(**members: str) -> bytes:
    """A tar archive; `a_txt` is the member a.txt."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as file:
        for name, text in members.items():
            info = tarfile.TarInfo(name.replace("_", "."))
            info.size = len(text)
            file.addfile(info, io.BytesIO(text.encode()))
    return whole.getvalue()


ERROR, WARNING, FINE = "error", "warning", ""
CASES: list[tuple[str, str, dict[str, str | bytes], str]] = [
    ("text: too few values", CTF, {"d.ctf": "|features 1 |labels 1\n"}, WARNING),
    ("text: no values", CTF, {"d.ctf": "|features |labels 1\n"}, WARNING),
    ("text: too many values", CTF, {"d.ctf": "|features 1 2 3 |labels 1\n"}, ERROR),
    ("text: too many, allowed", CTF + ";maxErrors=5", {"d.ctf": "|features 1 2 3 |labels 1\n|features 1 2 |labels 1\n"}, FINE),  # noqa: E501
    ("text: nan", CTF, {"d.ctf": "|features nan 2 |labels 1\n"}, ERROR),
    ("text: inf", CTF, {"d.ctf": "|features inf 2 |labels 1\n"}, ERROR),
    ("text: beyond the largest number", CTF, {"d.ctf": "|features 1e400 2 |labels 1\n"}, WARNING),
    ("text: a number of Python", CTF, {"d.ctf": "|features 1_0 2 |labels 1\n"}, ERROR),
    ("text: a number of C", CTF, {"d.ctf": "|features 0x10 2 |labels 1\n"}, ERROR),
    ("text: no digit before the point", CTF, {"d.ctf": "|features .5 2 |labels 1\n"}, ERROR),
    ("text: empty", CTF, {"d.ctf": ""}, ERROR),
    ("text: empty lines", CTF, {"d.ctf": "\n\n"}, ERROR),
    ("text: a comment", CTF, {"d.ctf": "|# nothing\n"}, ERROR),
    ("text: a second sequence of an id", CTF, {"d.ctf": "0 |features 1 2 |labels 1\n1 |features 3 4 |labels 1\n0 |features 1 2 |labels 1\n"}, WARNING),  # noqa: E501
    ("text: another stream", CTF, {"d.ctf": "|features 1 2 |labels 1 |more 3\n"}, FINE),
    ("text: a line of text", CTF, {"d.ctf": "|features 1 2 |labels 1\nhello\n"}, ERROR),
    ("text: binary", CTF, {"d.ctf": b"\0\1\2\xff" * 20}, ERROR),
    ("text: UTF-16", CTF, {"d.ctf": "|features 1 2 |labels 1\n".encode("utf-16")}, ERROR),
    ("text: byte order mark", CTF, {"d.ctf": b"\xef\xbb\xbf|features 1 2 |labels 1\n"}, FINE),
    ("text: two samples in a row", CTF, {"d.ctf": "|features 1 2 |features 3 4 |labels 1\n"}, ERROR),
    ("text: an id of 23 digits", CTF, {"d.ctf": "99999999999999999999999 |features 1 2 |labels 1\n"}, ERROR),
    ("text: a negative id", CTF, {"d.ctf": "-1 |features 1 2 |labels 1\n"}, ERROR),
    ("text: a word as id", CTF, {"d.ctf": "a |features 1 2 |labels 1\n"}, ERROR),
    ("text: sparse for dense", CTF, {"d.ctf": "|features 0:1 |labels 1\n"}, ERROR),
    ("sparse: dense for sparse", SPARSE, {"d.ctf": "|features 1 2 |labels 1\n"}, ERROR),
    ("sparse: index out of range", SPARSE, {"d.ctf": "|features 2:1 |labels 1\n"}, ERROR),
    ("sparse: negative index", SPARSE, {"d.ctf": "|features -1:1 |labels 1\n"}, ERROR),
    ("sparse: index of 20 digits", SPARSE, {"d.ctf": "|features 99999999999999999999:1 |labels 1\n"}, ERROR),
    ("sparse: an index twice", SPARSE, {"d.ctf": "|features 1:1 1:2 |labels 1\n"}, FINE),
    ("sparse: beyond the largest number", SPARSE, {"d.ctf": "|features 1:1e400 |labels 1\n"}, WARNING),
    ("sparse: no values", SPARSE, {"d.ctf": "|features |labels 1\n"}, FINE),
    ("sparse: no value of an index", SPARSE, {"d.ctf": "|features 1: |labels 1\n"}, ERROR),
    ("sparse: two colons", SPARSE, {"d.ctf": "|features 1:2:3 |labels 1\n"}, ERROR),
    ("two files: too few values", TWO, {"d.ctf": "0 |features 1\n", "e.ctf": "0 |labels 1\n"}, WARNING),
    ("two files: other keys", TWO, {"d.ctf": "0 |features 1 2\n", "e.ctf": "7 |labels 1\n"}, ERROR),
    ("two files: a key twice", TWO, {"d.ctf": "0 |features 1 2\n", "e.ctf": "0 |labels 1\n1 |labels 1\n0 |labels 1\n"}, ERROR),  # noqa: E501
    ("two files: the second empty", TWO, {"d.ctf": "0 |features 1 2\n", "e.ctf": ""}, ERROR),
    ("table: a short row", UCI, {"d.txt": "1 2 a\n1\n", "names.txt": "a\nb\n"}, ERROR),
    ("table: a long row", UCI, {"d.txt": "1 2 a 7\n1 2 b\n", "names.txt": "a\nb\n"}, FINE),
    ("table: nan", UCI, {"d.txt": "1 nan a\n", "names.txt": "a\nb\n"}, ERROR),
    ("table: beyond the largest number", UCI, {"d.txt": "1 1e400 a\n", "names.txt": "a\nb\n"}, WARNING),
    ("table: an unknown class", UCI, {"d.txt": "1 2 c\n", "names.txt": "a\nb\n"}, ERROR),
    ("table: empty", UCI, {"d.txt": "", "names.txt": "a\nb\n"}, ERROR),
    ("table: no names of classes", UCI, {"d.txt": "1 2 a\n", "names.txt": ""}, ERROR),
    ("table: a class twice", UCI, {"d.txt": "1 2 a\n", "names.txt": "a\na\n"}, ERROR),
    ("CSV: a word", CSV, {"d.csv": "a,b,c\n1,2,3\n4,x,6\n"}, ERROR),
    ("CSV: no column", CSV, {"d.csv": "a,b\n1,2\n"}, ERROR),
    ("CSV: a short row", CSV, {"d.csv": "a,b,c\n1,2,3\n4,6\n"}, ERROR),
    ("CSV: a long row", CSV, {"d.csv": "a,b,c\n1,2,3\n4,6,7,8\n"}, ERROR),
    ("CSV: an empty cell", CSV, {"d.csv": "a,b,c\n1,2,3\n4,,6\n"}, ERROR),
    ("CSV: nan", CSV, {"d.csv": "a,b,c\n1,2,3\n4,nan,6\n"}, WARNING),
    ("CSV: beyond the largest number", CSV, {"d.csv": "a,b,c\n1,2,3\n4,1e400,6\n"}, WARNING),
    ("CSV: empty", CSV, {"d.csv": ""}, ERROR),
    ("CSV: a header only", CSV, {"d.csv": "a,b,c\n"}, ERROR),
    ("CSV: a column twice", CSV, {"d.csv": "a,a,b,c\n1,2,3,4\n"}, ERROR),
    ("Parquet: wrong magic", PARQUET, {"d.parquet": "a,b,c\n1,2,3\n"}, ERROR),
    ("pictures: commas", IMAGE, {"d.map": "a.png,1\n"}, ERROR),
    ("pictures: no file", IMAGE, {"d.map": "a.png\t1\n"}, ERROR),
    ("pictures: class out of range", IMAGE, {"d.map": "a.png\t3\n", "a.png": PICTURE}, ERROR),
    ("pictures: negative class", IMAGE, {"d.map": "a.png\t-1\n", "a.png": PICTURE}, ERROR),
    ("pictures: no class", IMAGE, {"d.map": "a.png\n", "a.png": PICTURE}, ERROR),
    ("pictures: a key twice", IMAGE, {"d.map": "7\ta.png\t1\n7\ta.png\t2\n", "a.png": PICTURE}, WARNING),
    ("pictures: a number behind the class", IMAGE, {"d.map": "a.png\t1.5\n", "a.png": PICTURE}, WARNING),
    ("pictures: empty", IMAGE, {"d.map": ""}, ERROR),
    ("pictures: wrong magic", IMAGE, {"d.map": "a.png\t1\n", "a.png": b"no picture"}, ERROR),
    ("base64: class out of range", BASE64, {"d.b64": "0\t7\taGVsbG8=\n"}, ERROR),
    ("base64: no picture", BASE64, {"d.b64": "0\t1\taGVsbG8=\n"}, ERROR),
    ("binary: wrong magic", BINARY, {"d.bin": b"0123456789abcdef" * 8}, ERROR),
    ("binary: empty", BINARY, {"d.bin": b""}, ERROR),
    ("binary format: wrong magic", CBF, {"d.cbf": b"0123456789abcdef" * 8}, ERROR),
    ("Kaldi: a short row", KALDI, {"d.ark": "u1  [ 1 2\n 3 ]\n"}, ERROR),
    ("Kaldi: nan", KALDI, {"d.ark": "u1  [ 1 nan ]\n"}, WARNING),
    ("Kaldi: empty", KALDI, {"d.ark": ""}, ERROR),
    ("Kaldi: a key twice", KALDI, {"d.ark": "u1  [ 1 2 ]\nu1  [ 1 2 ]\n"}, ERROR),
    ("Kaldi: labels", ALIGNED, {"d.ark": "u1  [ 1 2 ]\n", "l.ark": "u1 1\n"}, FINE),
    ("Kaldi: another number of labels", ALIGNED, {"d.ark": "u1  [ 1 2 ]\n", "l.ark": "u1 0 0\n"}, ERROR),
    ("Kaldi: class out of range", ALIGNED, {"d.ark": "u1  [ 1 2 ]\n", "l.ark": "u1 3\n"}, ERROR),
    ("Kaldi: negative class", ALIGNED, {"d.ark": "u1  [ 1 2 ]\n", "l.ark": "u1 -1\n"}, ERROR),
    ("Kaldi: no labels", ALIGNED, {"d.ark": "u1  [ 1 2 ]\n", "l.ark": "u2 1\n"}, ERROR),
    ("tar: whole", TAR, {"d.tar": archive(a_txt="1 2\n", a_cls="1")}, FINE),
    ("tar: too few values", TAR, {"d.tar": archive(a_txt="1\n", a_cls="1")}, ERROR),
    ("tar: too many values", TAR, {"d.tar": archive(a_txt="1 2 3\n", a_cls="1")}, ERROR),
    ("tar: nan", TAR, {"d.tar": archive(a_txt="nan 2\n", a_cls="1")}, WARNING),
    ("tar: no member", TAR, {"d.tar": archive(a_txt="1 2\n", b_txt="1 2\n", b_cls="1")}, ERROR),
    ("tar: class out of range", TAR, {"d.tar": archive(a_txt="1 2\n", a_cls="2")}, ERROR),
    ("tar: negative class", TAR, {"d.tar": archive(a_txt="1 2\n", a_cls="-1")}, ERROR),
    ("tar: wrong magic", TAR, {"d.tar": b"hello" * 300}, ERROR),
    ("words: an unknown one", LM, {"d.lm": "</s> one two </s>\n", "words": "</s>\none\nthree\n"}, ERROR),
    ("words: empty", LM, {"d.lm": "", "words": "</s>\none\nthree\n"}, ERROR),
    ("words: one twice", LM, {"d.lm": "</s> one one </s>\n", "words": "</s>\none\none\n"}, ERROR),
    ("speech: labels of one utterance", HTK, {"states": "a\nb\n", "d.mlf": entries(["u0"])}, WARNING),
    ("speech: no labels", HTK, {"states": "a\nb\n", "d.mlf": ""}, ERROR),
    ("speech: labels twice", HTK, {"states": "a\nb\n", "d.mlf": entries(["u0", "u0", "u1"])}, ERROR),
    ("speech: more labels", HTK, {"states": "a\nb\n", "d.mlf": entries(["u0", "u1"]).replace("0 2", "0 3")}, ERROR),
    ("speech: a gap", HTK, {"states": "a\nb\n", "d.mlf": entries(["u0", "u1"]).replace("0 2", "1 2")}, ERROR),
    ("speech: no states", HTK, {"states": "", "d.mlf": entries(["u0", "u1"])}, ERROR),
    ("speech: no archive", HTK, {"states": "a\n", "d.mlf": entries(["u0"]), "d.scp": "u0.mfc=nix.ark[0,1]\n"}, ERROR),
    ("speech: frames out of range", HTK, {"states": "a\n", "d.mlf": entries(["u0"]), "d.scp": "u0.mfc=d.ark[0,9]\n"}, ERROR),  # noqa: E501
]  # fmt: skip
"""What the data are, the section of the reader, the files, and what is said of them."""


def worst(printed: str) -> str:
    """The worst severity of findings about data."""
    severities = {finding["severity"] for finding in json.loads(printed)["findings"]}
    return next((severity for severity in (ERROR, WARNING) if severity in severities), FINE)


@pytest.mark.parametrize(("reader", "files", "said"), [each[1:] for each in CASES], ids=[each[0] for each in CASES])
@pytest.mark.sampled
def test_reading(
    cntkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str, files: dict[str, str | bytes], said: str
) -> None:
    if reader == HTK:
        utterances(tmp_path, 2)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "main.cntk").write_text(config(reader))
    got = cntkpy("check", "--data", "--select", "CK06,CK07", "--format", "json", "main.cntk")
    assert worst(got.out) == said, got.out
    monkeypatch.chdir(tmp_path)
    assert run_ends(reader) == (said == ERROR)


def run_ends(reader: str) -> bool:
    """Whether reading all data ends with an error."""
    try:
        made = create_reader(reader)
        made.start_minibatch_loop(2, 0)
        while made.get_minibatch() is not None:
            pass
        made.close()
    except UserError:
        return True
    return False


NETWORK = """command = {commands}
modelPath = m
train = [ action = train
  BrainScriptNetworkBuilder = {{ features = Input {{2}} ; labels = Input {{1}} ; z = LinearLayer {{1}} (features)
    ce = SquareError (labels, z) ; criterionNodes = (ce) ; evaluationNodes = (ce) }}
  SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ]
  reader = [ {reader} ] ]
test = [ action = test ; minibatchSize = 2 ; reader = [ {tested} ] ]
"""
MORE = CTF.replace("labels=[", "extra=[dim=1;format=dense];labels=[")
STEPS: dict[str, tuple[str, str, str]] = {
    "lengths that differ": (
        CTF,
        "0 |features 1 2 |labels 1\n0 |features 3 4\n",
        "inputs 'labels' and 'features' have sequences of different lengths in one minibatch: sequence 0 has 1 sample "
        "of 'labels', 2 of 'features'",
    ),
    "no label of a sequence": (
        CTF,
        "|features 1 2 |labels 1\n|features 1 2\n",
        "sequence 1 has 0 samples of 'labels', 1 of 'features'",
    ),
    "no label at all": (CTF, "|features 1 2\n|features 3 4\n", "The input file (d.ctf) has no values called 'labels'"),
    "a stream that nothing reads": (MORE, "|features 1 2 |labels 1\n|features 3 4 |labels 1\n", ""),
    "lengths of what nothing reads": (MORE, "0 |features 1 2 |labels 1 |extra 3\n0 |features 3 4 |labels 1\n", ""),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("commands", ["train", "train:test"])
@pytest.mark.sampled
def test_a_step(cntkpy, name: str, commands: str) -> None:
    """What only the step meets: check says it in the run's words; it says nothing of streams that nothing reads."""
    reader, text, message = STEPS[name]
    good = reader if commands == "train" else CTF.replace("d.ctf", "good.ctf")
    files = {
        "main.cntk": NETWORK.format(commands=commands, reader=good, tested=reader),
        "d.ctf": text,
        "good.ctf": "|features 1 2 |labels 1\n",
    }
    checked = cntkpy("check", "--data", "--select", "CK06,CK07", "main.cntk", files=files)
    assert checked.code == (2 if message else 0) and message in checked.out, checked.out
    run = cntkpy("configFile=main.cntk")
    assert run.code == (1 if message else 0) and message in run.err, run.err


def test_classes_of_the_list_and_the_network(cntkpy) -> None:
    """The list of classes decides how many values the labels have, and not the section."""
    text = config(UCI).replace("2:1", "2:2").replace("SquareError ]", "SquareError ; evalCriterion = SquareError ]")
    files = {"main.cntk": text, "d.txt": "1 2 a\n", "names.txt": "a\nb\nc\n"}
    message = "the last layer has 2 elements, but the stream 'labels' has 3"
    checked = cntkpy("check", "main.cntk", files=files)
    assert checked.code == 2 and message in checked.out, checked.out
    run = cntkpy("configFile=main.cntk")
    assert run.code == 2 and message in run.err, run.err
