# ruff: noqa: E501  (tables of cases, a case a line)
"""Malformed data: every message names the place, the budget counts what CNTK counts."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config import ConfigError
from cntkpy.commands.cli import main
from cntkpy.readers import DataError, create_reader

pytestmark = pytest.mark.malformed

D, S, DS = "x:2", "s:5:sparse", "x:2 s:5:sparse"
GOOD = "0 |x 1 2 |s 0:1\n"

# inputs, text, line, column, sequence id, part of the message
MALFORMED = [
    (D, "0 |x .5 1\n", 1, 6, 0, "not a number: '.5'"),
    (D, "0 |x 1 2\n1 |x 5.e3 1\n", 2, 8, 1, "'5.e3'"),
    (D, "0 |x e5 1\n", 1, 6, 0, "'e5'"),
    (D, "0 |x --1 1\n", 1, 7, 0, "'--1'"),
    (D, "0 |x inf 1\n", 1, 6, 0, "'inf'"),
    (D, "0 |x nan 1\n", 1, 6, 0, "'nan'"),
    (D, "0 |x 0x10 1\n", 1, 7, 0, "'0x10'"),
    (D, "0 |x 1,5 1\n", 1, 7, 0, "','"),
    (D, "0 |x 2.0f 1\n", 1, 9, 0, "'2.0f'"),
    (D, "0 |x 2#0\n", 1, 7, 0, "'2#0'"),
    (D, "0 |x 1e 1\n", 1, 8, 0, "'1e'"),
    (D, "0 |x 1e+ 1\n", 1, 9, 0, "'1e+'"),
    (D, "0 |x - 1\n", 1, 7, 0, "'-'"),
    (D, "0 |x 1.2.3\n", 1, 9, 0, "'1.2.3'"),
    (D, "0 |x 1 abc\n", 1, 8, 0, "'abc'"),
    (D, "0 |x 1:2\n", 1, 7, 0, "':'"),
    (D, "0 |x 1 #\n", 1, 8, 0, "'#'"),
    (D, "0 |x 1234567890123456789012x\n", 1, 28, 0, "'x'"),
    (D, "0 |x 1.5e5.5\n", 1, 11, 0, "'1.5e5.5'"),
    (D, "0 |x 1 2 3\n", 1, 10, 0, "more values than its dimension 2"),
    (D, "0 |x 1 2\n0 |x 1 2 -3\n", 2, 10, 0, "more values"),
    (D, "12 junk |x 1 2\n", 1, 4, 12, "Unexpected character('j')"),
    (D, "12a |x 1 2\n", 1, 3, 12, "Unexpected character('a')"),
    (D, "-5 |x 1 2\n", 1, 1, 0, "Expected a sequence id"),
    (D, "1.5 |x 1 2\n", 1, 2, 1, "Unexpected character('.')"),
    (D, "0 |x 1 2\n 1 |x 3 4\n", 2, 2, 0, "Unexpected character('1')"),
    (D, "0 # |x 1 2\n", 1, 3, 0, "Unexpected character('#')"),
    (D, "0 |x 1\r2\n", 1, 8, 0, "Unexpected character('2')"),
    (D, "0 |x 1\v2\n", 1, 8, 0, "Unexpected character('2')"),
    (D, "0 | x 1 2\n", 1, 3, 0, "invalid character (a blank)"),
    (D, "0 || x\n", 1, 3, 0, "invalid character ('|')"),
    (D, "0 |x 1 2 |\n", 1, 10, 0, "invalid character (end of line)"),
    (D, "0 |x 1 2 |\t\n", 1, 10, 0, "invalid character (a tab)"),
    (D, "0 |x 1 2 |\u00e9 5\n", 1, 10, 0, "invalid character (byte 0xc3)"),
    (D, "0 |xx 1 2 |# remark\n", 1, 1, 0, "it has 'xx', the inputs are 'x' (line"),
    (D, "0 |x 1 2\n\n", 2, 1, 0, "Empty input row"),
    (D, "0 |x 1 2\n   \n", 2, 1, 0, "Empty input row"),
    (D, "0 |x 1 2\n|# remark\n", 2, 1, 0, "Empty input row"),
    (D, "0 |x 1 2\n0 |q 1\n", 2, 1, 0, "Empty input row"),
    (D, "0 |x 1 2\n1 |x 3 4 |x 5 6\n", 2, 1, 1, "contains more samples than expected"),
    (DS, "0 |x 1 2\n0 |s 1:1\n", 1, 1, 0, "less than expected"),
    (S, "0 |s 5:1\n", 1, 6, 0, "Index 5 of sparse input 's' is out of range, its dimension is 5"),
    (S, "0 |s 0:1\n1 |s 0:1 77:1\n", 2, 10, 1, "Index 77"),
    (S, "0 |s 99999999999999999999:1\n", 1, 6, 0, "out of range"),
    (S, "0 |s 4 :1\n", 1, 7, 0, "not index:value: '4'"),
    (S, "0 |s 4: 1\n", 1, 8, 0, "not a number"),
    (S, "0 |s 4:\n", 1, 8, 0, "not a number"),
    (S, "0 |s 4\n", 1, 7, 0, "not index:value"),
    (S, "0 |s -1:1\n", 1, 6, 0, "'-1:1'"),
    (S, "0 |s +1:1\n", 1, 6, 0, "'+1:1'"),
    (S, "0 |s 1.5:1\n", 1, 7, 0, "'1.5:1'"),
    (S, "0 |s :1\n", 1, 6, 0, "':1'"),
    (S, "0 |s a:1\n", 1, 6, 0, "'a:1'"),
    (S, "0 |s 1:a\n", 1, 8, 0, "'1:a'"),
    (S, "0 |s 1:1x\n", 1, 9, 0, "'1:1x'"),
    (S, "0 |s 1:1:1\n", 1, 9, 0, "'1:1:1'"),
    (S, "0 |s 1:.5\n", 1, 8, 0, "'1:.5'"),
    (S, "0 |s 1:1,2:1\n", 1, 9, 0, "','"),
    (S, "0 |s 1;1\n", 1, 7, 0, "'1;1'"),
    (D, "99999999999999999999 |x 1 2\n", 1, 1, None, "Overflow while reading a numeric sequence id"),
    (D, "0 |x 1 2\n18446744073709551616 |x 1 2\n", 2, 1, None, "Overflow"),
    (D, "abc |x 1 2\n", 1, 1, None, "Expected a sequence id at the offset 0"),
    (D, "\n\n x |x 1 2\n", 3, 1, None, "Expected a sequence id at the offset 3"),
    (D, "+5 |x 1 2\n", 1, 1, None, "Expected a sequence id at the offset 0"),
    (D, "5", 1, 1, None, "Expected a sequence id at the offset 0"),
    (D, "\n\n18446744073709551616 |x 1 2\n", 3, 1, None, "Overflow"),
    (D, "0 |x 1\x7f2\n", 1, 7, 0, "byte 0x7f"),
    (D, "0 \x7f|x 1 2\n", 1, 3, 0, "Unexpected character(byte 0x7f)"),
    (D, "0 |x +-1 1\n", 1, 7, 0, "'+-1'"),
    (D, "0 |x 1- 2\n", 1, 8, 0, "'1-'"),
    (D, "0 |x 1,2\n", 1, 7, 0, "'1,2'"),
    (D, "0 |x 1e5e5 2\n", 1, 9, 0, "'1e5e5'"),
    (D, "0 |x 1 2 |#| y\n", 1, 12, 0, "invalid character (a blank)"),
    (D, "5,6 |x 1 2\n", 1, 2, 5, "Unexpected character(',')"),
    (D, "5 |x 1 2\n6\n", 2, 1, 6, "Empty input row"),
    (D, "5 |x 1 2\n5\n", 2, 1, 5, "Could not read a row (# 2)"),
    (D, "|x 1 2\r\n\r\n", 2, 1, 1, "Empty input row"),
    # what is cut off by the end of the file
    (D, "5 |x 1 2 |", 1, 10, 5, "invalid character"),
    (D, "5 |x 1 2\n|x", 2, 1, 5, "The file ends directly after the name of an input, 'x'"),
    (D, "5 |x 1 2 |long", 1, 10, 5, "The file ends directly after the name of an input, 'long'"),
    (D, "5 |x 1 2\n|x  ", 2, 5, 5, "The file ends where a value of input 'x' is expected"),
    (S, "5 |s 1:2\n5 |s ", 2, 6, 5, "The file ends where a value of input 's' is expected"),
    (D, "5 |x -", 1, 7, 5, "'-'"),
    (D, "5 |x 12.+", 1, 10, 5, "'12.+'"),
    (D, "5 |x 12.+e", 1, 10, 5, "'12.+e'"),
    (D, "5 |x 1 2 3", 1, 10, 5, "more values than its dimension 2"),
    (S, "5 |s 1:", 1, 8, 5, "'1:'"),
    (S, "0 |s 2147483647:1\n", 1, 6, 0, "Index 2147483647"),
    (S, "0 |s 18446744073709551617:1\n", 1, 6, 0, "Index 18446744073709551617"),  # 1 modulo 2^64
]


@pytest.mark.parametrize(("inputs", "text", "line", "column", "key", "part"), MALFORMED)
def test_malformed_data_is_refused_with_its_place(files, inputs, text, line, column, key, part):
    with pytest.raises(DataError) as caught:
        files.minibatches(text, inputs, traceLevel=0)
    message = str(caught.value)
    assert part in message
    assert str(files.folder / "data.ctf") in message
    if line is not None:
        assert f"line {line}, column {column}," in message
    if key is not None and "Expected" not in message:
        assert f"sequence id {key}" in message
        offset = len("\n".join(text.split("\n")[: line - 1]).encode()) + (line > 1) + column - 1
        assert f"byte offset {offset}" in message
    assert caught.value.exit_code == 1
    assert caught.value.diagnostic.hint


def test_a_compressed_file_is_told_so(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.ctf", "w") as archive:
        archive.writestr("a", GOOD)
    with pytest.raises(DataError, match=r"a\.ctf is compressed in the format ZIP, which is not read") as caught:
        create_reader(f"file={tmp_path}/a.ctf; input=[x=[dim=2;format=dense]]")
    hint = caught.value.diagnostic.hint or ""
    assert hint.startswith("unpack it, or compress it with zstd, gzip, bzip2 or xz: unzip -p ")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("0 |x 1 2\n 1 |x 3 4\n", "very start of its line, without a blank"),
        ("0 |x 1 2\n\t17 |x 3 4\n", "very start of its line, without a blank"),
        ("0 | x 1 2\n", "directly follows '|', without a blank"),
        ("0 9 |x 1 2\n", "mend the file"),
        ("0 || x\n", "mend the file"),
    ],
)
def test_a_blank_where_none_may_stand_is_named(files, text, hint):
    with pytest.raises(DataError) as caught:
        files.minibatches(text, D)
    assert hint in str(caught.value.diagnostic.hint)


@pytest.mark.parametrize(
    ("inputs", "text", "errors"),
    [
        (
            "x:2",
            "0 |x 1 2\n1 |x 3 4 5 |x 6 7\n2 |x 8\n3 junk |x 9 10\n4 |x 11 12 | y 5\n\n7 |x .5 1 |x 15 16\n8 |x\n9 |x 1 2 |q 4\n",
            6,  # one too many values, junk, a bad prefix, an empty row and its short sequence, a bad number
        ),
        ("s:5:sparse", "0 |s 0:1 3:2\n1 |s 5:1 |s 1:4\n2 |s\n3 |s 2:1 2:5\n4 |s 4 :1 |s 0:7\n5 |s 3:1 1:2\n", 2),
        ("x:1", "1 |x 1\n1 |x 2\n2 |x 3\n|x 4\n1 |x 5\n|# only a remark\n|x 6\n007 |x 7\n7 |x 8\n", 2),
    ],
)
def test_budget_counts_as_the_original(files, inputs, text, errors):
    assert files.minibatches(text, inputs, size=1, maxErrors=errors, traceLevel=0)
    message = r"^Reached the maximum number of allowed errors while reading the input file \(.*data\.ctf\)\. .*line "
    with pytest.raises(DataError, match=message):
        files.minibatches(text, inputs, size=1, maxErrors=errors - 1, traceLevel=0)


@pytest.mark.parametrize("name", ["z", "a_name_longer_than_any_other"])
def test_an_input_that_is_not_selected_is_passed_over(files, caplog, name):
    """Whatever the length of its name (C14)."""
    text = "".join(f"{i} |{name} {i} |x {i} 2\n" for i in range(3))
    expected = files.sequences("0 |x 0 2\n1 |x 1 2\n2 |x 2 2\n", "x:2")
    assert files.sequences(text, "x:2") == expected
    assert f"'{name}' is none of 'x'" in caplog.text
    assert files.sequences(f"0 |x 0 2 |{name} not a number\n", "x:2", traceLevel=0) == expected[:1]


def test_a_number_too_large_is_told_once_with_its_place(files, caplog):
    text = "0 |x 1 2 |s 0:1\n1 |x 3 -1e400 |s 0:1\n2 |x 1e39 4 |s 1:1e999\n3 |x 1e38 1 |s 1:-1e400\n"
    minibatches = files.minibatches(text, DS)
    assert minibatches[0].streams["x"].ravel().tolist() == [1, 2, 3, -np.inf, 1e39, 4, 1e38, 1]
    messages = [record.getMessage() for record in caplog.records if "too large" in record.getMessage()]
    assert [message.partition(", at")[0] for message in messages] == [
        "A value of input 'x' is too large for its type, and read as infinite (line 2, column 8, sequence id 1)",
        "A value of input 's' is too large for its type, and read as infinite (line 3, column 18, sequence id 2)",
    ]


@pytest.mark.parametrize(
    ("sample", "hint"),
    [
        ("0 :1", "no blank stands between an index, its colon and its value"),
        ("0: 1", "no blank stands between an index, its colon and its value"),
        ("0:1 2 : 3", "no blank stands between an index, its colon and its value"),
        ("1 2", "write format = dense in the section of 's'"),
        ("0:1 2", "mend the file"),
        ("0: |x 1 2", "mend the file"),
    ],
)
def test_what_is_wrong_with_sparse_values(files, sample, hint):
    with pytest.raises(DataError) as caught:
        files.minibatches(f"0 |s {sample} |x 1 2\n", DS, traceLevel=0)
    assert hint in str(caught.value.diagnostic.hint)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_columns_are_those_an_editor_shows(files, mark):
    with pytest.raises(DataError, match=rf"line 1, column 6, sequence id 0, byte offset {5 + len(mark.encode())}\)"):
        files.minibatches(f"{mark}0 |x a\n", "x:1", traceLevel=0)


@pytest.mark.parametrize(
    ("text", "errors", "values"),
    [
        # E6 for a row without a sample and E7b for its sequence, which has a row more than samples
        ("1 |x 1\n\n2 |x 2\n", 2, [[1], [2]]),
        ("1 |x 1\r\n\r\n2 |x 2\r\n", 2, [[1], [2]]),
        ("1 |x 1\n|q\n2 |x 2\n", 2, [[1], [2]]),
        ("1\n1 |x 1\n", 2, [[1]]),
        ("1 |x 1\n6", 2, [[1]]),  # an id at the very end of the file is none
        ("1 |x 1 2\n1 |x 4\n", 3, [[4]]),  # and E5
        # one E7a for a sequence, however many samples it has too many
        ("1 |x 1 |x 2 |x 3\n2 |x 4\n", 1, [[1, 2, 3], [4]]),
        # one E1 for everything up to the next sign
        ("1 2 3 a |x 1\n", 1, [[1]]),
        ("1 |x 1\n 2 |x 2\n", 1, [[1, 2]]),
        ("1 |x 1 b |x 2\n", 1, [[2]]),
        # nothing: comments, short names that are not asked for, fewer values
        ("1 |# a |x 1 |#|##|q 7\n", 0, [[1]]),
        ("1 |x\n", 0, [[0]]),
    ],
)
def test_what_counts_as_an_error(files, text, errors, values):
    found = files.sequences(text, "x:1", maxErrors=errors, traceLevel=0)
    assert [[v for (v,) in s["x"]] for _, s in found] == values
    if errors:
        with pytest.raises(DataError, match="Reached the maximum number of allowed errors"):
            files.sequences(text, "x:1", maxErrors=errors - 1, traceLevel=0)


def test_any_number_of_errors(files):
    assert len(files.sequences("".join(f"{i} |x a |x 1\n" for i in range(9)), "x:1", maxErrors=-1, traceLevel=0)) == 9


@pytest.mark.parametrize(("ids", "text"), [("true", "|x 1\n\n|x 2\n"), ("false", "0 |x 1\n1\n2 |x 2\n")])
def test_empty_rows_are_passed_over_where_an_input_defines_the_size(files, ids, text):
    def read(more: str):
        reader = create_reader(
            f'file="{files.write(text)}";input=[x=[dim=1;format=dense{more}]];skipSequenceIds={ids};maxErrors=9'
            ";randomize=false;traceLevel=0"
        )
        reader.start_minibatch_loop(9, 0)
        minibatch = reader.get_minibatch()
        return minibatch.keys, minibatch.streams["x"].ravel().tolist()

    assert read(";definesMBSize=true") == ([0, 2], [1, 2])
    assert read("") == ([0, 2], [1, 2])  # the empty sequence is left out, and counts


MANUAL = """100 |a 1 2 3 |b 1 2
100 |a 4 5 6 |b 3 4
200 |a 1 2 3 |b 5 6
333 |b 7 8
333 |b 9 10
400 |a 1 2 3 |b 11 12
|a 4 5 6 |b 13 14
|a 7 8 9
500 |a 1 2 3 |b 15 16
"""


@pytest.mark.parametrize("errors", [0, 100])
def test_an_input_without_a_sample_is_an_empty_sequence(files, errors):
    """A12: the five sequences that CNTK's manual counts in such a file."""
    found = files.sequences(MANUAL, "a:3 b:2", maxErrors=errors)
    lengths = {key: (len(streams["a"]), len(streams["b"])) for key, streams in found}
    assert lengths == {100: (2, 2), 200: (1, 1), 333: (0, 2), 400: (3, 2), 500: (1, 1)}
    single = files.sequences(MANUAL, "a:3 b:2", size=1, maxErrors=errors)
    assert single == found
    assert dict(found)[333] == {"a": [], "b": [[7, 8], [9, 10]]}


def test_a_minibatch_may_have_no_sample_of_a_sparse_input(files):
    (minibatch,) = files.minibatches("1 |x 1 |s 2:1\n2 |x 3\n", "x:1 s:4:sparse")
    assert minibatch.streams["s"].toarray().tolist() == [[0, 0, 1, 0], [0, 0, 0, 0]]
    empty = files.minibatches("1 |x 1\n2 |x 3\n", "x:1 s:4:sparse")[0]
    assert empty.streams["s"].shape[1] == 4
    assert empty.streams["s"].nnz == 0


def spoilt(count: int, bad: set[int]) -> str:
    """Sequences of two steps; in the bad ones a value of one input is none."""
    return "".join(f"{i} |x {i} |y 1\n{i} |x {'?' if i in bad else i} |y 2\n" for i in range(count))


def test_a_spoilt_sequence_is_left_out_whole(files, tools, caplog):
    """A11: a value that is none in one input takes the sequence with it, in all inputs; a line per sweep says so."""
    reader = files.reader(spoilt(9, {2, 5}), "x:1 y:1", maxErrors=4, randomize=False, traceLevel=0)
    for number in range(2):
        caplog.clear()
        keys = [key for m in tools["epoch"](reader, 3, number) for key in m.keys]
        assert keys == [0, 1, 3, 4, 6, 7, 8]
        told = [r.getMessage() for r in caplog.records]
        assert told == ["WARNING: 2 of 9 sequences are malformed and were left out of this sweep, the first: 2, 5."]
    reader.close()


def test_a_spoilt_sequence_is_left_out_of_joined_files(compose, tools, caplog):
    x = "".join(f"{i} |x {i}\n{i} |x {'?' if i == 3 else i}\n" for i in range(6))
    y = "".join(f"{i} |y {i}\n{i} |y {i}\n" for i in range(6))
    reader = compose([(x, "x:1"), (y, "y:1")], maxErrors=3, randomize=False)
    assert [key for m in tools["epoch"](reader, 4) for key in m.keys] == [0, 1, 2, 4, 5]
    assert "1 of 6 sequences are malformed and were left out of this sweep, the first: 3." in caplog.text
    reader.close()


def test_more_than_half_of_a_sweep_is_not_left_out(files):
    with pytest.raises(DataError, match=r"3 of 5 sequences are malformed and were left out, the first: 0, 1, 2\."):
        files.minibatches(spoilt(5, {0, 1, 2}), "x:1 y:1", maxErrors=100, traceLevel=0)
    assert len(files.sequences(spoilt(4, {0, 1}), "x:1 y:1", maxErrors=100, traceLevel=0)) == 2


def test_order_of_messages(files, caplog):
    """Values, then their row, then the sequence; traceLevel=2 tells of every sequence at the end."""
    with caplog.at_level("INFO", "cntkpy.readers"):
        files.minibatches("5 |x 1 |z 3\n5 |x a\n6 |x 2 |x 3\n", "x:1", maxErrors=4, traceLevel=2)
    told = [record.getMessage() for record in caplog.records]
    expected = [
        ("'z' is none of 'x'", "line 1, column 9", 8),
        ("'a'", "line 2, column 6", 17),
        ("Could not read a row (# 2)", "line 2, column 1", 12),
        ("less than expected", "line 1, column 1", 0),
        ("more samples than there are inputs", "line 3, column 1", 19),
        ("more samples than expected", "line 3, col", 19),
        ("Read sequence id 5 (samples of x: 1)", "", 0),
        ("Read sequence id 6 (samples of x: 2)", "", 19),
    ]
    path = files.folder / "data.ctf"
    for message, (what, place, offset) in zip(told, expected, strict=True):
        assert what in message
        assert place in message
        assert message.endswith(f"at offset {offset} in the input file ({path}).")


@pytest.mark.parametrize("level", [0, 1])
def test_what_was_not_told_is_mentioned_at_the_end(files, level):
    with pytest.raises(DataError) as caught:
        files.minibatches("5 |x a |x b |x 1\n", "x:1", maxErrors=1, traceLevel=level)
    assert ("traceLevel=1 shows" in caught.value.diagnostic.hint) == (level == 0)


def test_ids_that_come_again_are_told(files, caplog):
    text = "1 |x 1\n2 |x 2\n1 |x 3\n2 |x 4\n"
    assert [key for key, _ in files.sequences(text, "x:1")] == [1, 2, 1, 2]
    assert "Sequence id 1 occurs again after other ids" in caplog.text
    caplog.clear()
    files.sequences("3 |x 1\n2 |x 2\n2 |x 2\n1 |x 3\n", "x:1")
    assert caplog.text == ""


def test_an_error_counts_once_however_often_it_is_read(files, tools):
    reader = files.reader(
        "0 |x 1\n1 |x a |x 2\n2 |x 3\n", "x:1", maxErrors=1, randomize=False, chunkSizeInBytes=5, traceLevel=0
    )
    for number in range(4):
        assert sum(m.num_samples for m in tools["epoch"](reader, 1, number)) == 3


def test_malformed_samples_are_dropped(files):
    found = files.sequences(
        "0 |x 3 4 5 |x 6 7\n1 |x 0.1234567890123456789012 x |x 1 2\n", "x:2", maxErrors=2, traceLevel=0
    )
    assert [s["x"] for _, s in found] == [[[6, 7]], [[1, 2]]]


def test_warnings_name_the_place(files, caplog):
    files.minibatches("5 |x 1\n6 |x a |x 1 2\n", "x:2", maxErrors=1, traceLevel=1)
    assert "fewer values than its dimension 2; the rest is zero (line 1, column 3, sequence id 5)" in caplog.text
    assert "(line 2, column 6, sequence id 6), at offset 12 in the input file (" in caplog.text


def test_unknown_names_are_told_once(files, caplog):
    files.minibatches("".join(f"{i} |q 1 |x 1\n" for i in range(500)), "x:1")
    assert caplog.text.count("'q' is none of 'x'") == 1


def test_nothing_is_logged_at_level_0(files, caplog):
    files.minibatches("5 |x 1 |q 4\n6 |x a |x 1 2\n", "x:2", maxErrors=1, traceLevel=0)
    assert caplog.text == ""


def test_more_events_than_fit_the_first_arrays(files):
    text = "".join(f"{i} |x a |x b |x {i}\n" for i in range(300))
    found = files.sequences(text, "x:1", maxErrors=600, traceLevel=0)
    assert [s["x"] for _, s in found] == [[[i]] for i in range(300)]
    with pytest.raises(DataError, match="line 300, column"):
        files.sequences(text, "x:1", maxErrors=599, traceLevel=0)


def test_many_long_numbers_and_many_samples_a_line(files):
    number = "0.1234567890123456789012345"
    text = "".join(f"0 {f'|x {number} ' * 40}\n" for _ in range(10))
    ((_, streams),) = files.sequences(text, "x:1", maxErrors=1, traceLevel=0)
    assert streams["x"] == [[float(number)]] * 400


def test_wide_empty_samples(files):
    (minibatch,) = files.minibatches("".join(f"{i} |x\n" for i in range(50)), "x:100000", traceLevel=0)
    assert minibatch.streams["x"].shape == (1, 50, 100000)
    assert not minibatch.streams["x"].any()


@pytest.mark.parametrize("data", [b"", b"\n\n  \n", b"\xef\xbb\xbf", b"\xef\xbb\xbf \n"])
def test_empty_files(files, data):
    with pytest.raises(DataError, match=r"Input file is empty.*data\.ctf"):
        files.minibatches(data, "x:1")


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_utf_16(files, mark):
    with pytest.raises(DataError, match="UTF-16"):
        files.minibatches(mark + b"0 |x 1\n", "x:1")


def test_missing_file():
    with pytest.raises(DataError, match=r"\(/no/where\.ctf\) cannot be read: No such file"):
        create_reader("file=/no/where.ctf; input=[x=[dim=1;format=dense]]")


def test_a_file_cut_short_while_it_is_read(files, singles):
    reader = files.reader(singles, "x:1 y:1", randomize=False)
    (files.folder / "data.ctf").write_text("0 |x 1")
    reader.start_minibatch_loop(1, 0)
    with pytest.raises(DataError, match="cut short"):
        reader.get_minibatch()


def test_frame_mode_refuses_sequences(files):
    with pytest.raises(DataError, match="Detected a non-frame sequence of size 2 in frame mode") as caught:
        files.minibatches("6 |y 1 |x 1\n7 |y 1 |x 1\n7 |x 2\n", "x:1 y:1", frameMode=True, randomize=False)
    assert "it is sequence 7 of the stream 'x'" in str(caught.value.diagnostic.hint)


@pytest.mark.parametrize(
    ("section", "kind", "part"),
    [
        ("readerType=CNTKTextFormatReadr", "UnknownReader", "CNTKTextFormatReadr"),
        ("readerType=x;module=no.such.module", "UnknownModule", "no.such.module"),
        ("readerType=Raeder;module=cntkpy.readers.reader", "UnknownReader", "Raeder"),
        ("file=f", None, "input is missing"),
        ("input=[x=[dim=1;format=dense]]", None, "file is missing"),
        ("file=f;input=[]", "BadValue", "no input stream"),
        ("file=f;input=[x=[format=dense]]", None, "dim is missing"),
        ("file=f;input=[x=[dim=1]]", None, "format is missing"),
        ("file=f;input=[x=[dim=1;format=dens]]", "BadChoice", "dens"),
        ("file=f;input=[x=[dim=abc;format=dense]]", "BadInteger", "abc"),
        ("file=f;input=[x=[dim=0;format=dense]]", "BadValue", "0 is not a dimension"),
        ("file=f;input=[x=[dim=3000000000;format=sparse]]", "BadValue", "not a dimension"),
        ("file=f;input=[x=[dim=1;format=dense;alias=q];y=[dim=1;format=dense;alias=q]]", "BadValue", "already mapped"),
        ("file=f;input=[x=[dim=1;format=dense;alias=y];y=[dim=1;format=dense]]", "BadValue", "already mapped"),
        ("file=f;input=[x=[dim=1;format=dense;alias='a|b']]", "BadValue", "cannot be the name"),
        (
            "file=f;input=[x=[dim=1;format=dense;definesMBSize=true];y=[dim=1;format=dense;definesMBSize=true]]",
            "BadValue",
            "only one input",
        ),
        ("file=f;input=[x=[dim=1;format=dense]];randomize=maybe", "BadBoolean", "maybe"),
        ("file=f;input=[x=[dim=1;format=dense]];precision=half", "BadChoice", "half"),
        ("file=f;input=[x=5]", "BadValue", "no input stream"),
        ('file=f;input=[x=[dim=1;format=dense;alias=""]]', "BadValue", "cannot be the name"),
        ("file=f;input=[x=[dim=1;format=dense]];maxErrors=some", "BadInteger", "some"),
        (
            "deserializers=([type=CNTKTextFormatDeserializer;file=f;"
            "input=[x=[dim=1;format=dense;transforms=([type=Scale])]]])",
            "BadValue",
            "the transform 'Scale' changes pictures",
        ),
        ("readerType=CompositeDataReader;file=f", None, "deserializers is missing"),
        ("deserializers=()", "BadValue", "no deserializer is given"),
        ("deserializers=([type=Nonsense])", "UnknownDeserializer", "Nonsense"),
        ("deserializers=([file=f])", None, "type is missing"),
        (
            "truncated=true;deserializers=([type=CNTKTextFormatDeserializer])",
            "BadValue",
            "Truncation length cannot be 0.",
        ),
        (
            "truncated=true;truncationLength=2;frameMode=true;deserializers=([type=CNTKTextFormatDeserializer])",
            "Conflict",
            "frameMode and truncated BPTT are mutually exclusive.",
        ),
    ],
)
def test_bad_configurations(section, kind, part):
    with pytest.raises(ConfigError) as caught:
        create_reader(section)
    error = caught.value
    assert kind is None or error.kind == kind
    assert part in error.diagnostic.render()
    assert error.span is not None or "is missing" in part
    assert error.exit_code == 2
    if kind == "UnknownReader":
        assert "did you mean" in (error.diagnostic.hint or "")


RUN = """command = train
modelPath = m/m.dnn
train = [ action = train
    BrainScriptNetworkBuilder = { x = Input{2} ; y = Input{1} ; z = DenseLayer{1}(x) ; e = SquareError(y, z) ; criterionNodes = (e) }
    SGD = [ maxEpochs=1 ; minibatchSize=2 ; learningRatesPerMB=0.1 ]
    reader = [ readerType=CNTKTextFormatReader ; file=a.ctf ; input=[ x=[dim=2;format=dense%s] ; y=[dim=1;format=dense] ] ] ]
"""


@pytest.mark.parametrize(
    ("alias", "text", "message", "hint"),
    [
        ("", "|y 1 |xs 1 2\n|y 0 |xs 3 4\n", "has no values called 'x'.", "it has: y, xs; did you mean 'xs'? write alias = xs in the section of 'x'"),
        ("", "|y 1 |S0 1 2\n|y 0 |S0 3 4\n", "has no values called 'x'.", "it has: y, S0; write one of them as alias = ... in the section of 'x'"),
        (";alias=S0", "|y 1 |S1 1 2\n|y 0 |S1 3 4\n", "called 'S0', the alias of the input 'x'.", "it has: y, S1; write one of them"),
        ("", "|y 1\n|y 0\n", "has no values called 'x'.", "it has: y; write one of them"),
        ("", "|y 1 |x 1 2\n|y 0 |S0 3 4\n", "sequence 1 has 1 sample of 'y', 0 of 'x'", "the data have no sample of 'x' there, or call it otherwise (see the log); these inputs"),
        ("", "| y 1 | x 1 2\n", "Input name prefix ('|') is followed by an invalid character (a blank) (line 1, column 1,", "directly follows '|', without a blank"),
    ],
)  # fmt: skip
def test_a_training_says_what_the_file_has(tmp_path, monkeypatch, capsys, alias, text, message, hint):
    """W6, W7: the run names the file, the name that it lacks, those that it has, and the nearest."""
    monkeypatch.chdir(tmp_path)
    Path("a.ctf").write_text(text)
    Path("c.cntk").write_text(RUN % alias)
    assert main(["run", "c.cntk"]) == 1
    printed = " ".join("".join(capsys.readouterr()).split())
    assert message in printed and hint in printed
    assert ("axis of its own" in printed) == ("0 of 'x'" in message)


def test_a_stream_that_is_not_needed_may_be_absent(tmp_path, caplog):
    """A warning names it; the data of the other streams are given."""
    (tmp_path / "a.ctf").write_text("|xs 1 2\n|xs 3 4\n" * 20000)
    section = "randomize=false;input=[x=[dim=2;format=dense;alias=xs];y=[dim=1;format=dense]]"
    reader = create_reader(f"file={tmp_path}/a.ctf;{section}")
    reader.start_minibatch_loop(2, 0)
    assert reader.get_minibatch().streams["x"].tolist() == [[[1, 2], [3, 4]]]
    assert "has no values called 'y' in its first 256 KB. (it has: xs; write one of them" in caplog.text
    caplog.clear()
    reader.get_minibatch()
    assert "no values" not in caplog.text
