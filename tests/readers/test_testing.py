"""The checks of plug-ins pass for readers that keep the contract, and find those that do not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy import testing
from cntkpy.readers import create_reader
from cntkpy.readers.writer import create_writer

TEXT = "".join(f"{i} |x {i}\n" for i in range(14))
PLUGIN = Path(__file__).parents[2] / "sample_configs" / "plugin"


def make(path: Path) -> Any:
    path.write_text(TEXT)
    return lambda: create_reader(f'file="{path}" ; input=[x=[dim=1;format=dense]]')


def test_a_reader_of_text_keeps_the_contract(tmp_path: Path) -> None:
    testing.check_reader(make(tmp_path / "a.ctf"))


def test_the_sample_plug_in_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PLUGIN))
    streams = "x=[field=size;dim=2] ; y=[field=kind;classes=daisy:rose:tulip]"
    section = f'readerType=JsonLinesReader ; module="cntkpy_jsonlines.reader" ; file="{PLUGIN / "flowers.jsonl"}"'
    testing.check_reader(lambda: create_reader(f"{section} ; {streams}"), minibatch_size=20)
    for name in [one for one in sys.modules if one.startswith("cntkpy_jsonlines")]:
        del sys.modules[name]


def test_a_reader_that_forgets_its_position_is_found(tmp_path: Path) -> None:
    whole = make(tmp_path / "a.ctf")

    def forgetful() -> Any:
        reader = whole()
        start = reader.start_minibatch_loop
        reader.set_state = lambda state: start(4, 0)
        return reader

    with pytest.raises(AssertionError, match="does not resume where the state was taken"):
        testing.check_reader(forgetful)


# ------------------------------------------------------------------------------------------------- writers

DATA = [{"z": np.arange(6, dtype=np.float32).reshape(3, 2) + 10 * n} for n in range(3)]


def test_the_writer_of_the_sample_plug_in_keeps_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PLUGIN))
    section = f'writerType=create_writer ; module="cntkpy_jsonlines.writer" ; file="{tmp_path}/z.jsonl"'
    testing.check_writer(lambda: create_writer(section), [tmp_path / "z.jsonl"], DATA)
    for name in [one for one in sys.modules if one.startswith("cntkpy_jsonlines")]:
        del sys.modules[name]


WRITERS = {
    "writerType=BinaryWriter ; wrecords=9 ; wfile=z.out ; z=[sectionType=Data;dim=2]": ["z.out"],
    "writerType=HTKMLFWriter ; z=[dim=2;scpFile=z.scp]": ["a.out", "b.out", "c.out"],
    'writerType=Kaldi2Writer ; z=[dim=2;scpFile=names;Kaldicmd="ark,scp:z.ark,z.list"]': ["z.ark", "z.list"],
    'writerType=Kaldi2Writer ; z=[dim=2;scpFile=names;Kaldicmd="ark,t:z.out"]': ["z.out"],
    "writerType=LUSequenceWriter ; z=[file=z.out;token=words]": ["z.out"],
}


@pytest.mark.parametrize("section", WRITERS)
def test_writers_of_ours_keep_the_contract(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "z.scp").write_text("a.out\nb.out\nc.out\n")
    (tmp_path / "names").write_text("a\nb\nc\n")
    (tmp_path / "words").write_text("yes\nno\n")
    testing.check_writer(lambda: create_writer(section), [tmp_path / name for name in WRITERS[section]], DATA)


class Whole:
    """A writer of lines that keeps the contract."""

    def __init__(self, path: Path):
        self.path, self.lines = path, ""

    def sections(self) -> dict[str, str]:
        return {}

    def save(self, data: dict[str, Any]) -> Any:
        self.lines += f"{data['z'].tolist()}\n"
        return True

    def save_mapping(self, section: str, labels: dict[int, str]) -> None: ...

    def close(self) -> None:
        self.path.write_text(self.lines)

    def abandon(self) -> None: ...


class AtOnce(Whole):
    def save(self, data: dict[str, Any]) -> Any:
        super().save(data)
        self.close()
        return True


class SaysNothing(Whole):
    def save(self, data: dict[str, Any]) -> Any:
        super().save(data)


class NeverCloses(Whole):
    def close(self) -> None: ...


class LeavesHalf(Whole):
    def abandon(self) -> None:
        self.close()


class LeavesAnother(Whole):
    def abandon(self) -> None:
        self.path.with_suffix(".tmp").touch()


class Removes(Whole):
    def abandon(self) -> None:
        self.path.unlink(missing_ok=True)


class Counts(Whole):
    count = 0

    def close(self) -> None:
        Counts.count += 1
        self.path.write_text(self.lines + "x" * Counts.count)


class ListsPairs(Whole):
    def sections(self) -> Any:
        return {"z": 1}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (AtOnce, "z.out can be seen before it is complete"),
        (SaysNothing, r"save\(\) says whether it wants more, not None"),
        (NeverCloses, r"close\(\) leaves no .*z.out"),
        (LeavesHalf, "the writer leaves half of z.out"),
        (LeavesAnother, "an abandoned writer leaves z.tmp"),
        (Removes, "removes what was there before"),
        (Counts, "other sizes when they are written again"),
        (ListsPairs, "names of sections and their types, not {'z': 1}"),
    ],
)
def test_writers_that_break_the_contract_are_found(kind: type[Whole], message: str, tmp_path: Path) -> None:
    testing.check_writer(lambda: Whole(tmp_path / "good.out"), [tmp_path / "good.out"], DATA)
    with pytest.raises(AssertionError, match=message):
        testing.check_writer(lambda: kind(tmp_path / "z.out"), [tmp_path / "z.out"], DATA)
