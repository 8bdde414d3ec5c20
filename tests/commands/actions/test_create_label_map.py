"""`action=createLabelMap`: the file it makes, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFIG = """
command = map
map = [ action = createLabelMap ; section = train ; traceLevel = 2 ]
train = [ reader = [ readerType = UCIFastReader ; file = "data.txt" {more}
    features = [ dim = 2 ; start = 1 ]
    labels = [ dim = 1 ; start = 0 {mapping} ] ] ]
"""
DATA = "oak 1 2\nash 3 4\noak 5 6\nfir 7 8\n"


def config(mapping: str = '; labelMappingFile = "out/labels.map"', more: str = "") -> str:
    return CONFIG.replace("{mapping}", mapping).replace("{more}", more)


@pytest.mark.parametrize("more", ["", "; randomize = auto", "; randomize = none ; minibatchMode = Full"])
def test_labels_in_order_of_appearance(cntkpy, tmp_path: Path, more: str) -> None:
    got = cntkpy("configFile=m.cntk", files={"m.cntk": config(more=more), "data.txt": DATA})
    assert got.code == 0, got.err
    assert (tmp_path / "out" / "labels.map").read_bytes() == b" oak \n ash \n fir \n"
    assert "read 4 labels and produced out/labels.map" in got.err
    assert "seconds elapsed" in got.err


def test_numbers_have_no_map(cntkpy, tmp_path: Path) -> None:
    """It would say that it makes a file, and make none."""
    text = config('; labelMappingFile = "m.map" ; labelType = regression')
    got = cntkpy("configFile=m.cntk", files={"m.cntk": text, "data.txt": DATA})
    assert got.code == 2 and "labels of labelType=regression have no names" in got.err
    assert "Creating" not in got.err


def test_a_file_that_exists_stays(cntkpy, tmp_path: Path) -> None:
    files = {"m.cntk": config(), "data.txt": DATA, "out/labels.map": "mine\n"}
    (tmp_path / "out").mkdir()
    got = cntkpy("configFile=m.cntk", files=files)
    assert got.code == 0, got.err
    assert "nothing to do" in got.err
    assert (tmp_path / "out" / "labels.map").read_text() == "mine\n"


def test_the_path_may_stand_in_the_reader(cntkpy, tmp_path: Path) -> None:
    text = config("; labelDim = 3", '; labelMappingFile = "m.map"')
    got = cntkpy("configFile=m.cntk", "traceLevel=0", "map=[traceLevel=0]", files={"m.cntk": text, "data.txt": DATA})
    assert got.code == 0, got.err
    assert (tmp_path / "m.map").read_text() == " oak \n ash \n fir \n"
    assert "read 4 labels" not in got.err


def test_the_path_may_stand_further_out(cntkpy, tmp_path: Path) -> None:
    """Any value can be defined at a higher level (D1)."""
    files = {"m.cntk": config("; labelDim = 3"), "data.txt": DATA}
    for words in (("check", "m.cntk"), ("configFile=m.cntk",)):
        got = cntkpy(*words, 'labelMappingFile="root.map"', files=files)
        assert got.code == 0, got.err + got.out
    assert (tmp_path / "root.map").read_text().split() == ["oak", "ash", "fir"]


def test_the_size_of_a_minibatch_has_no_effect(cntkpy) -> None:
    """The file is read as a whole, and a warning says so (A13)."""
    got = cntkpy("configFile=m.cntk", "map=[minibatchSize=9]", files={"m.cntk": config(), "data.txt": DATA})
    assert got.code == 0, got.err
    assert "createLabelMap" in got.err
    assert "'minibatchSize' has no effect" in got.err


@pytest.mark.parametrize(
    ("words", "text", "message"),
    [
        ((), config("; labelDim = 3"), "labelMappingFile"),
        (
            (),
            config("; labelMappingFile = x")
            .replace("labels =", "")
            .replace("[ dim = 1", "x = [ a = 1")
            .replace("labelMappingFile", "l"),
            "no section of labels",
        ),
        (("map=[section=trian]",), config(), "trian"),
        ((), config().replace('"data.txt"', '"none.txt"'), "cannot be opened"),
        ((), config().replace("dim = 2", "dim = 3"), "at least 4 are needed"),
        (("train=[reader=[readerType=BinaryReader]]",), config(), "makes no label mapping files"),
    ],
)
def test_errors(cntkpy, tmp_path: Path, words: tuple[str, ...], text: str, message: str) -> None:
    got = cntkpy("configFile=m.cntk", *words, files={"m.cntk": text, "data.txt": DATA})
    assert got.code != 0
    assert message in got.err
    assert not list(tmp_path.rglob("*.map"))
    assert "Traceback" not in got.err


def test_a_training_without_the_file_names_the_action(cntkpy) -> None:
    from cntkpy.readers import DataError, create_reader

    with pytest.raises(DataError) as caught:
        create_reader(
            'readerType=UCIFastReader ; file="/dev/null" ; features=[dim=1] ;'
            'labels=[start=1;labelMappingFile="none.map"]'
        )
    assert "createLabelMap" in (caught.value.diagnostic.hint or "")


@pytest.mark.parametrize("words", [("check", "m.cntk"), ("configFile=m.cntk",)])
def test_a_section_that_is_not_there(cntkpy, words: tuple[str, ...]) -> None:
    """Found before anything runs; a command before may take long."""
    got = cntkpy(*words, files={"m.cntk": config().replace("section = train", "section = trian"), "data.txt": DATA})
    assert got.code == 2
    assert "m.cntk:3:" in got.out + got.err
    assert "m.cntk:map:section: there is no section 'trian'" in got.out + got.err
    assert "did you mean 'train'?" in got.out + got.err
