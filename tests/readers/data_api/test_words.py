"""Errors of data that a Python program reads speak of its arguments, not of options of configurations (W10)."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cntkpy.readers
from cntkpy.cntk_config import UserError
from cntkpy.cntk_config.declare import Declared, Parameter
from cntkpy.readers import (
    Base64ImageDeserializer,
    CsvDeserializer,
    CTFDeserializer,
    HTKFeatureDeserializer,
    HTKMLFDeserializer,
    ImageDeserializer,
    KaldiFeatureDeserializer,
    KaldiLabelDeserializer,
    MinibatchSource,
    StreamDef,
    StreamDefs,
    TarDeserializer,
    transforms,
)
from cntkpy.readers.data_api.words import ARGUMENTS, KEYS, python_words
from tests.commands.checks.test_check_and_run import archive
from tests.commands.checks.test_records import entries, utterances

PICTURE = (Path(__file__).parents[3] / "tools" / "fuzz" / "seeds" / "image.png").read_bytes()


def ctf(**streams: Any) -> Any:
    return CTFDeserializer("d.ctf", StreamDefs(**streams))


def csv(filter: str | None = None, **streams: Any) -> Any:
    return CsvDeserializer("d.csv", StreamDefs(**streams), None, filter)


def tar() -> Any:
    return TarDeserializer("d.tar", StreamDefs(x=StreamDef("txt", 2), y=StreamDef("cls", 2, is_sparse=True)))


def pictures(*made: Any) -> Any:
    return ImageDeserializer("d.map", StreamDefs(x=StreamDef("image", transforms=list(made)), y=StreamDef("label", 3)))


def speech(dim: int = 2, states: str | None = "states", **more: Any) -> Any:
    features = HTKFeatureDeserializer(StreamDefs(x=StreamDef(scp="d.scp", shape=dim, **more)))
    return [*features, HTKMLFDeserializer(states, StreamDefs(y=StreamDef(mlf="d.mlf", shape=2)))]


def kaldi(states: str | None = None) -> Any:
    features = KaldiFeatureDeserializer(StreamDefs(x=StreamDef(scp="ark:d.ark", shape=2)))
    return [*features, KaldiLabelDeserializer(states, StreamDefs(y=StreamDef(mlf="ark:l.ark", shape=2)))]


XY = {"x": StreamDef("x", 2), "y": StreamDef("y", 1)}
ROWS = "a,b,c\n1,2,rose\n3,4,lily\n"
MAP = {"a.png": PICTURE, "d.map": "a.png\t1\n"}
UTTERANCES: dict[str, str | bytes] = {"states": "a\nb\n", "d.mlf": entries(["u0", "u1"])}
ALIGNED: dict[str, str | bytes] = {"d.ark": "u1 [ 1 2 ]\n", "l.ark": "u1 5\n", "states": "1\n2\n"}
CASES: list[tuple[str, dict[str, str | bytes], Callable[[], Any], dict[str, Any], str]] = [
    ("too many values", {"d.ctf": "|x 1 2 3|y 1\n"}, lambda: ctf(**XY), {}, "if every sample has 3 values, write shape=3 in the StreamDef of 'x'; else mend the file, or raise max_errors to skip malformed samples"),
    ("sparse values", {"d.ctf": "|x 1:2|y 1\n"}, lambda: ctf(**XY), {}, "index:value: write is_sparse=True in the StreamDef of 'x'"),
    ("dense values", {"d.ctf": "|x 1 2|y 1\n"}, lambda: ctf(x=StreamDef("x", 2, is_sparse=True)), {}, "dense values: write is_sparse=False in the StreamDef of 'x'"),
    ("no number", {"d.ctf": "|x a|y 1\n"}, lambda: ctf(**XY), {}, "raise max_errors (now 0)"),
    ("no id", {"d.ctf": "hello\n"}, lambda: ctf(**XY), {}, 'deserializer["skipSequenceIds"] = True makes'),
    ("a field twice", {"d.ctf": "|x 1\n"}, lambda: ctf(x=StreamDef("x", 2), y=StreamDef("x", 2)), {}, "stream 'y', field: Alias x is already mapped"),
    ("no file", {}, lambda: ctf(**XY), {}, "check filename"),
    ("several samples", {"d.ctf": "0 |x 1 2|y 1\n0 |x 1 2|y 1\n"}, lambda: ctf(**XY), {"frame_mode": True}, "leave frame_mode out"),
    ("two ways to cut", {"d.ctf": "0 |x 1 2|y 1\n"}, lambda: ctf(**XY), {"frame_mode": True, "truncation_length": 2}, "frame_mode and truncation_length are mutually exclusive"),
    ("number of columns", {"d.csv": ROWS}, lambda: csv(x=StreamDef(["a", "b"], 3)), {}, "stream 'x', field: there are 2 columns, but shape is 3"),
    ("a text column", {"d.csv": ROWS}, lambda: csv(x=StreamDef("c", 1)), {}, "write is_sparse=True"),
    ("a class too many", {"d.csv": ROWS}, lambda: csv(x=StreamDef("c", 1, is_sparse=True)), {}, "write the number of its classes as shape"),
    ("several sparse columns", {"d.csv": ROWS}, lambda: csv(x=StreamDef(["a", "b"], 2, is_sparse=True)), {}, "write is_sparse=False"),
    ("a missing value", {"d.csv": "a,b\n1,\n2,3\n"}, lambda: csv(x=StreamDef("b", 1)), {}, 'filter="b is not null"'),
    ("no keys", {"d.csv": ROWS, "d.ark": "u1 [ 1 2 ]\n"}, lambda: [kaldi()[0], csv(x=StreamDef("a", 1))], {}, 'key_column="NAME" says'),
    ("member: values", {"d.tar": archive(a_txt="1 2 3", a_cls="1")}, tar, {}, "it has 3 numbers, but shape is 2"),
    ("member: class", {"d.tar": archive(a_txt="1 2", a_cls="4")}, tar, {}, "is not a class below shape, which is 2"),
    ("member: a word", {"d.tar": archive(a_txt="1 2", a_cls="cat")}, tar, {}, 'deserializer["input"][STREAM]["labelMappingFile"] = FILE lists names'),
    ("words as keys", {"d.tar": archive(a_txt="1 2", a_cls="1"), "d.ctf": "0 |z 1\n"}, lambda: [ctf(z=StreamDef("z", 1)), tar()], {}, "write numbers as keys; only utterances have names"),
    ("picture: class", MAP | {"d.map": "a.png\t3\n"}, pictures, {}, "shape is the number of classes"),
    ("picture: ratio", MAP, lambda: pictures(transforms.crop(crop_type="center", side_ratio=2.5)), {}, "stream 'x', transforms[0], side_ratio: a ratio"),
    ("picture: two ratios", MAP, lambda: pictures(transforms.crop(crop_type="center", side_ratio=0.5, area_ratio=0.5)), {}, "side_ratio and area_ratio exclude each other"),
    ("picture: jitter", MAP, lambda: pictures(transforms.crop(crop_type="randomside", side_ratio=0.5, jitter_type="uniArea")), {}, 'write jitter_type="uniRatio"'),
    ("picture: padding", MAP, lambda: pictures(transforms.scale(4, 4, 3, scale_mode="pad", pad_value=300)), {}, "transforms[0], pad_value: 300"),
    ("picture: channels", MAP, lambda: pictures(transforms.scale(4, 4, 1)), {}, 'write deserializer["grayscale"] = True'),
    ("pictures: cut", MAP, lambda: pictures(transforms.scale(4, 4, 3)), {"truncation_length": 2}, "leave truncation_length out"),
    ("base64: class", {"d.b64": "0\t7\taGVsbG8=\n"}, lambda: Base64ImageDeserializer("d.b64", StreamDefs(x=StreamDef("image"), y=StreamDef("label", 3))), {}, "shape is the number of classes"),
    ("frames", UTTERANCES, lambda: speech(3), {}, "stream 'x', shape: shape is 3, which is not an odd multiple"),
    ("frames in a window", UTTERANCES, lambda: speech(3, context=(1, 1)), {}, "with context, shape is the size of one frame"),
    ("no list of states", UTTERANCES, lambda: speech(states=None), {}, "add label_mapping_file"),
    ("another state", UTTERANCES | {"d.mlf": entries(["u0"], "q")}, speech, {}, "see label_mapping_file"),
    ("the first stream", UTTERANCES, lambda: speech(broadcast=True), {}, "stream 'x', broadcast: the first deserializer"),
    ("alignment: class", ALIGNED, kaldi, {}, "shape is the number of classes"),
    ("alignment: state", ALIGNED, lambda: kaldi("states"), {}, "label_mapping_file has the numbers of the archive"),
]  # fmt: skip
# ruff: noqa: E501
OF_CONFIGURATIONS = re.compile(
    rf"\b({'|'.join(sorted({*ARGUMENTS} - {'file', 'columns'}))}|section|reader's|<python>)\b|<python>"
)


@pytest.mark.parametrize(
    ("files", "deserializers", "options", "told"), [each[1:] for each in CASES], ids=[each[0] for each in CASES]
)
def test_words_of_python(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str | bytes],
    deserializers: Callable[[], Any],
    options: dict[str, Any],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if "d.mlf" in files:
        utterances(tmp_path, 2)
    for name, content in files.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as caught:
        source = MinibatchSource(deserializers(), randomize=False, max_sweeps=1, **options)
        source.next_minibatch(10)
    error = caught.value
    text = "\n".join([error.message, error.hint or "", *error.notes])
    assert told in text, text
    keys_of_dictionaries = re.sub(r'\["\w+"\]', "", text)
    assert not OF_CONFIGURATIONS.search(keys_of_dictionaries), text
    assert str(error) == error.message, "what a traceback shows"
    assert error.hint is None or f"help: {error.hint}" in error.__notes__


@pytest.mark.parametrize(
    "text",
    [
        "cannot read dim.csv",
        "the stream 'dim' is empty",
        "no column 'maxErrors'",
        "the file rx/alias.scp is cut",
        "a dimension",
    ],
)
def test_names_of_users_stay(text: str) -> None:
    assert python_words(text) == text


def test_an_error_of_a_class_of_the_program_stays() -> None:
    """What a program says of its own data is not changed."""
    from cntkpy.readers import StreamInformation, UserDeserializer
    from cntkpy.readers.errors import ArgumentError

    class Own(UserDeserializer):
        def stream_infos(self) -> Any:
            return [StreamInformation("x", 0, "dense", "float32", (2,))]

        def num_chunks(self) -> int:
            return 1

        def get_chunk(self, chunk_id: int) -> Any:
            raise ArgumentError("dim and maxErrors are words of mine")

    with pytest.raises(UserError, match="dim and maxErrors are words of mine"):
        MinibatchSource(Own(), max_sweeps=1).next_minibatch(1)


def declared(kind: type) -> set[str]:
    """The names of the parameters of a class and of those derived from it."""
    names = {one.name for one in vars(kind).values() if isinstance(one, Parameter)}
    return names.union(*map(declared, kind.__subclasses__()))


def test_the_arguments_are_options() -> None:
    """Each word of the table is an option that some reader declares."""
    for module in pkgutil.walk_packages(cntkpy.readers.__path__, "cntkpy.readers."):
        if module.name.rpartition(".")[2] in ("parameters", "options"):
            importlib.import_module(module.name)
    assert declared(Declared) >= {*ARGUMENTS, *KEYS}


def test_whole_sequences_and_truncation(tmp_path: Path) -> None:
    """A training in Python whose network selects steps: `truncation_length` is the word, not `truncated=true`."""
    import cntkpy.compat.cntk as C

    (tmp_path / "d.ctf").write_text("0 |x 1 2|y 1\n0 |x 3 4|y 1\n0 |x 5 6|y 1\n")
    deserializer = CTFDeserializer(str(tmp_path / "d.ctf"), StreamDefs(**XY))
    source = MinibatchSource(deserializer, randomize=False, truncation_length=2)
    x = C.sequence.input_variable(2)
    y = C.sequence.input_variable(1, sequence_axis=C.Axis("y"))
    loss = C.squared_error(C.layers.Dense(1)(C.sequence.last(x)), C.sequence.last(y))
    trainer = C.Trainer(None, loss, [C.sgd(loss.parameters, 0.1)])
    with pytest.raises(UserError) as caught:
        C.training_session(trainer, source, 4, {x: source.streams.x, y: source.streams.y}, max_samples=8).train()
    assert "truncation_length cuts them into pieces" in caught.value.message
    assert (caught.value.hint or "").startswith("leave truncation_length of the MinibatchSource out; sequence.first")


def test_a_key_that_nothing_reads(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "d.ctf").write_text("|x 1 2\n")
    deserializer = CTFDeserializer(str(tmp_path / "d.ctf"), StreamDefs(x=StreamDef("x", 2)))
    MinibatchSource({**deserializer, "CHUNKSIZEINBYTES": 100}).close()
    assert not caplog.records
    MinibatchSource({**deserializer, "chunkSizeInByte": 100}).close()
    assert "nothing reads 'chunkSizeInByte' - did you mean 'chunkSizeInBytes'?" in caplog.text
