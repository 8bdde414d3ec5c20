"""Label files: names, units, patterns, errors with their lines; labels of all frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.htk import mlf
from cntkpy.readers.formats.htk.mlf import read_labels
from cntkpy.readers.formats.htk.script import read_script
from cntkpy.readers.utterances.labels import ClassVectors, Labels, UtteranceLabels, read_states

pytestmark = pytest.mark.malformed


def labels(folder: Path, text: str | bytes, states: bytes | None = b"sil\na\nb\n", **options: object) -> Labels:
    (folder / "l.mlf").write_bytes(text if isinstance(text, bytes) else text.encode())
    known = None
    if states is not None:
        (folder / "states").write_bytes(states)
        known = read_states(str(folder / "states"))
    return read_labels([str(folder / "l.mlf")], known, **options)  # type: ignore[arg-type]


def ranges(found: Labels) -> dict[str, list[tuple[int, int]]]:
    return {
        key: [(int(found.ends[r]), int(found.classes[r])) for r in range(found.first[u], found.first[u + 1])]
        for u, key in enumerate(found.keys)
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('#!MLF!#\n"*/x.lab"\n0 500000 sil\n500000 700000 b -1.5 m x\n.\n', {"x": [(5, 0), (7, 2)]}),
        ('#!MLF!#\n"x"\n0 5 a\n5 7 b\n.\n', {"x": [(5, 1), (7, 2)]}),
        ('#!MLF!#\r\n"d.e/x.y.lab"\r\n0\t5  a\r\n.\r\n', {"d.e/x.y": [(5, 1)]}),
        ('#!MLF!#\r"x.lab"\r0 5 a\r.\r', {"x": [(5, 1)]}),
        ('\n#!MLF!#\n\n"x.l"\n\n0 5 a\n\n.\n#!MLF!#\n"y.l"\n0 1 b\n.', {"x": [(5, 1)], "y": [(1, 2)]}),
        ('#!MLF!#\n"x"\n0 49999 sil\n49999 250000 a\n.\n', {"x": [(0, 0), (3, 1)]}),
        ('\ufeff#!MLF!#\n"x"\n0 5.0 a\n.\n', {"x": [(5, 1)]}),
        ('#!MLF!#\nx.lab\n0 5 a\n.\n"y"\n0 1 a\n.\n', {"y": [(1, 1)]}),
        ('#!MLF!#\n"x"\n.\n"y"\n0 1 a\n.\n', {"y": [(1, 1)]}),
    ],
)
def test_entries(tmp_path: Path, text: str, expected: dict[str, list[tuple[int, int]]]):
    assert ranges(labels(tmp_path, text)) == expected


def test_classes_without_a_state_list(tmp_path: Path):
    assert ranges(labels(tmp_path, '#!MLF!#\n"x"\n0 5 a 17\n5 6 b 4\n.\n', None)) == {"x": [(5, 17), (6, 4)]}


def test_scores_of_hvite_beside_names_of_states(tmp_path: Path):
    """Whatever follows the name of the state is another program's: scores, models, words."""
    text = '#!MLF!#\n"x"\n0 300000 sil 12.75\n300000 400000 a -3.5e2 b 7 WORD\n400000 500000 b 2\n.\n'
    assert ranges(labels(tmp_path, text)) == {"x": [(3, 0), (4, 1), (5, 2)]}


def test_gaps_are_noticed(tmp_path: Path):
    text = '#!MLF!#\n"x"\n0 5 a\n6 7 b\n.\n"y"\n1 2 a\n.\n"z"\n0 5 a\n.\n'
    assert labels(tmp_path, text).contiguous.tolist() == [False, False, True]


def test_blocks_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = "#!MLF!#\r\n" + "".join(f'"*/u{i}.lab"\r\n0 {i + 1} a\r\n{i + 1} {i + 3} b\r\n.\r\n' for i in range(9))
    whole = ranges(labels(tmp_path, text))
    for size in (7, 16, 23, 64):
        monkeypatch.setattr(mlf, "BLOCK_BYTES", size)
        assert ranges(labels(tmp_path, text)) == whole == {f"u{i}": [(i + 1, 1), (i + 3, 2)] for i in range(9)}


def test_only_what_is_wanted_is_kept(tmp_path: Path):
    text = '#!MLF!#\n"x"\n0 5 a\n.\n"y"\n0 1 b\n1 2 a\n.\n"x"\n0 4 b\n.\n'
    assert ranges(labels(tmp_path, text, wanted=lambda key: key == "y")) == {"y": [(1, 2), (2, 1)]}


@pytest.mark.parametrize("odd", ["0 4 other", "0 4", "4 0 a", "-1 4 a", "0 99999999999999999999 a"])
def test_what_is_wrong_in_entries_that_are_not_wanted_does_not_matter(tmp_path: Path, odd: str):
    text = f'#!MLF!#\n"x"\n0 5 a\n{odd}\n9 7 b\n.\n"y"\n0 1 b\n1 2 a\n.\n"z"\n{odd}\n.\n'
    assert ranges(labels(tmp_path, text, wanted=lambda key: key == "y")) == {"y": [(1, 2), (2, 1)]}
    with pytest.raises(DataError, match="line 4"):
        labels(tmp_path, text, wanted=lambda key: key != "z")


ERRORS = {
    "empty": ("", "is empty"),
    "no header": ('"x"\n0 5 a\n.\n', r"line 1: a label file begins"),
    "ends inside": ('#!MLF!#\n"x"\n0 5 a\n', r"ends inside an entry \(line 3\)"),
    "twice": ('#!MLF!#\n"x"\n0 5 a\n.\n"x.lab"\n0 5 a\n.\n', r"line 5: the utterance x has labels already .*line 2"),
    "unknown state": ('#!MLF!#\n"x"\n0 5 q\n.\n', r"line 3: the state 'q' is not in the state list"),
    "not a number": ('#!MLF!#\n"x"\n0 5x a\n.\n', r"line 3: '5x' is not a number"),
    "negative": (
        '#!MLF!#\n"x"\n-1 5 a\n.\n',
        r"line 3: '-1' is not a number(.|\n)*a line is start end state \.\.\., with whole numbers from 0",
    ),
    "backwards": ('#!MLF!#\n"x"\n0 5 a\n7 6 a\n.\n', r"line 4: the range ends before it begins"),
    "two fields": ('#!MLF!#\n"x"\n0 5\n.\n', r"line 3: '0 5' is not a range"),
    "too large": ('#!MLF!#\n"x"\n0 99999999999999999999 a\n.\n', r"line 3: '9+' is too large"),
    "too late": ('#!MLF!#\n"x"\n0 90000000000000000 a\n.\n', r"labels of x end at frame"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(tmp_path: Path, name: str):
    text, message = ERRORS[name]
    with pytest.raises(DataError, match=message):
        labels(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 5 a", r"line 3: '0 5 a' is not a range"),
        ("0 5 a 1 2", "line 3"),
        ("0 5 a x", "'x' is not a number"),
        ("0 5 a 65535", "'65535' is not a class"),
        (
            "0 300000 sil 12.75",
            r"line 3: '12\.75' is not a class, which is a whole number.*(.|\n)*HVite writes a score",
        ),
        ("0 5 a 12.", r"'12\.' is not a class"),
        ("0 5 a 12.0", r"'12\.0' is not a class"),
        ("0 5 a -345.5", r"'-345\.5' is not a number(.|\n)*HVite writes a score"),
        ("0 5 a -345.5 a -7", r"'0 5 a -345\.5 a -7' is not a range(.|\n)*for names of states add labelMappingFile"),
    ],
)
def test_errors_without_a_state_list(tmp_path: Path, text: str, message: str):
    with pytest.raises(DataError, match=message):
        labels(tmp_path, f'#!MLF!#\n"x"\n{text}\n.\n', None)


@pytest.mark.parametrize(("states", "message"), [(b"", "is empty"), (b"a\nb\na\n", r"line 1 and line 3")])
def test_bad_state_lists(tmp_path: Path, states: bytes, message: str):
    with pytest.raises(DataError, match=message):
        labels(tmp_path, "#!MLF!#\n", states)


@pytest.mark.parametrize("count", [150, pytest.param(1000, marks=pytest.mark.thorough)])
def test_mutated_files(tmp_path: Path, count: int):
    """Labels or a DataError, never anything else."""
    rng = np.random.default_rng(3)
    good = b'#!MLF!#\n"*/x.lab"\n0 500000 sil\n500000 700000 b\n.\n"y.lab"\n0 100000 a\n.\n'
    for _ in range(count):
        data = bytearray(good)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            data[place] = rng.choice([0, 9, 10, 13, 32, 34, 46, 48, 57, 97, 255])
        try:
            found = labels(tmp_path, bytes(data))
            assert len(found) <= 3 and len(found.ends) <= 4
        except DataError:
            pass


def test_all_frames_of_all_utterances_are_labelled(tmp_path: Path):
    """A label file like those of recognisers: times in 100 ns, scores, phones and words; counts of states agree."""
    rng = np.random.default_rng(4)
    names = [f"s{i}[{k}]" for i in range(5) for k in (2, 3, 4)]
    lines, listed, wanted, at = ["#!MLF!#"], [], dict.fromkeys(names, 0), 0
    for u in range(40):
        lines.append(f'"*/set/{u}/u-{u}.x.lab"')
        end = 0
        for r in range(rng.integers(1, 9)):
            begin, end, name = end, end + int(rng.integers(0 if r else 2, 60)), names[rng.integers(len(names))]
            tail = f" s{r} {rng.standard_normal():f} word" if r % 3 == 0 else ""
            lines.append(f"{begin * 100000} {end * 100000} {name} {rng.standard_normal():f}{tail}")
            wanted[name] += end - begin
        lines.append(".")
        listed.append(f"set/{u}/u-{u}.x.mfc=.../f.chunk[{at},{at + end - 1}]\n")
        at += end
    (tmp_path / "s.scp").write_text("".join(listed))
    found = labels(tmp_path, "\n".join(lines) + "\n", "\n".join(names).encode())
    script = read_script([str(tmp_path / "s.scp")])
    assert found.keys == script.keys and found.contiguous.all()
    assert np.array_equal(found.lengths, script.last - script.first + 1)
    data = UtteranceLabels(
        "y", found, np.arange(40), ClassVectors(len(names)), np.array([0, 40]), Corpus(False), frame_mode=True
    )
    whole, single = data.load_chunk(0).streams["y"].indices, data.frame_batches(np.arange(at), [0, at])[0]["y"].indices
    assert whole is not None and np.array_equal(whole, single)
    assert np.bincount(whole, minlength=len(names)).tolist() == list(wanted.values())


RANGE = st.tuples(st.integers(1, 300), st.integers(0, 2))


@settings(max_examples=40)
@given(
    utterances=st.lists(st.lists(RANGE, min_size=1, max_size=5), max_size=5),
    unit=st.sampled_from([1, 100000]),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    mapped=st.booleans(),
)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    utterances: list[list[tuple[int, int]]],
    unit: int,
    ending: str,
    mapped: bool,
):
    """What is written as text in any of its forms is read as it was."""
    lines, expected = ["#!MLF!#"], {}
    for u, ranges_of in enumerate(utterances):
        lines.append(f'"*/a.b/u{u}.lab"')
        end, expected[f"a.b/u{u}"] = 0, []
        for length, state in ranges_of:
            begin, end = end, end + length
            lines.append(f"{begin * unit} {end * unit} {['sil', 'a', 'b'][state]}{'' if mapped else f' {state}'}")
            expected[f"a.b/u{u}"].append((end, state))
        lines.append(".")
    found = labels(tmp_path_factory.getbasetemp(), ending.join(lines) + ending, b"sil\na\nb\n" if mapped else None)
    assert ranges(found) == expected and found.contiguous.all()
