# ruff: noqa: E501  (tables of cases, a case a line)
"""The text format, rule by rule: what each line gives."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("+5", 5), ("-0.5", -0.5), ("5.", 5), ("1e5", 1e5), ("1E-3", 1e-3), ("1.5e+3", 1500), ("007", 7),
        ("-123", -123), ("45.", 45), ("6.78", 6.78), ("9.10e-11", 9.10e-11), ("12345678", 12345678),
        ("1234567890123456789", float(1234567890123456789)), ("0.1", 0.1), ("123456789012345678901234567890", 1.2345678901234568e29),
        ("0.30000000000000004", 0.30000000000000004), ("2.2250738585072014e-308", 2.2250738585072014e-308),
        ("5e-324", 5e-324), ("1e400", np.inf), ("-1e400", -np.inf), ("1e-400", 0), ("0.000000000000000000000001", 1e-24),
        ("9007199254740993", 9007199254740992.0), ("1.7976931348623157e308", 1.7976931348623157e308),
        ("0.12345678", 0.12345678), ("1234567.123456789012345", 1234567.123456789012345), ("-0", 0.0),
    ],
)  # fmt: skip
def test_numbers(files, text, value):
    ((_, streams),) = files.sequences(f"|x {text}\n", "x:1")
    assert streams["x"] == [[value]]


def test_numbers_in_single_precision_are_rounded_once_from_double(files):
    (minibatch,) = files.minibatches("|x 0.1 16777217 1e39\n", "x:3", precision="float")
    assert minibatch.streams["x"].dtype == np.float32
    assert minibatch.streams["x"].ravel().tolist() == [np.float32(0.1), 16777216, np.inf]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # the worked example of the specification (nominal length 3, two samples each: one error)
        (
            "7 |a 1 2 |b 0:1\n7 |a 3     |# short vector is padded\n  |b\n9|b 3:5 2:1 |a 0 0\n",
            [(7, {"a": [[1, 2], [3, 0]], "b": [[(0, 1)], []]}), (9, {"a": [[0, 0]], "b": [[(3, 5), (2, 1)]]})],
        ),
        ("1 |a 1 2 |b\n", [(1, {"a": [[1, 2]], "b": [[]]})]),
        ("1 |a|b\n", [(1, {"a": [[0, 0]], "b": [[]]})]),
        ("1|b 0:1|a 1 2\n", [(1, {"a": [[1, 2]], "b": [[(0, 1)]]})]),
        ("1\t|a\t1\t2\t|b\t0:1\n", [(1, {"a": [[1, 2]], "b": [[(0, 1)]]})]),
        ("1 |a 1-2 |b 1:+1\n", [(1, {"a": [[1, -2]], "b": [[(1, 1)]]})]),
        ("1 |a 1+2 |b 1:-1e2 \n", [(1, {"a": [[1, 2]], "b": [[(1, -100)]]})]),
        (
            "1 |a 1 2 |b 0:1\r\n2 |a 3 4 |b 1:1\r\n",
            [(1, {"a": [[1, 2]], "b": [[(0, 1)]]}), (2, {"a": [[3, 4]], "b": [[(1, 1)]]})],
        ),
        ("\ufeff1 |a 1 2 |b\n", [(1, {"a": [[1, 2]], "b": [[]]})]),
        ("\n\n 5 |a 1 2 |b\n", [(5, {"a": [[1, 2]], "b": [[]]})]),
        ("1 |# a 9 9 |a 1 2 |#### |b 2:1 |#\n", [(1, {"a": [[1, 2]], "b": [[(2, 1)]]})]),
        ("1 |a 1 2 |z 5 6 7 |b 0:1\n", [(1, {"a": [[1, 2]], "b": [[(0, 1)]]})]),
        ("1 |A 5 5 |a 1 2 |b\n", [(1, {"a": [[1, 2]], "b": [[]]})]),
        ("007 |a 1 2 |b\n7 |a 3 4 |b\n", [(7, {"a": [[1, 2], [3, 4]], "b": [[], []]})]),
        ("1 |a 1 2\n |b 0:1\n", [(1, {"a": [[1, 2]], "b": [[(0, 1)]]})]),
        ("1 |a 1 2 |b 3:1 0:2 3:4\n", [(1, {"a": [[1, 2]], "b": [[(3, 1), (0, 2), (3, 4)]]})]),
        ("1 |a 1 2 |b 0:1 |b 1:1\n1 |a 3 4\n", [(1, {"a": [[1, 2], [3, 4]], "b": [[(0, 1)], [(1, 1)]]})]),
        ("1 |a 1 2 |b 0:1\n1", [(1, {"a": [[1, 2]], "b": [[(0, 1)]]})]),
        ("18446744073709551615 |a 1 2 |b\n", [(18446744073709551615, {"a": [[1, 2]], "b": [[]]})]),
        (
            "2 |a 1 2 |b\n1 |a 3 4 |b\n2 |a 5 6 |b\n",
            [(2, {"a": [[1, 2]], "b": [[]]}), (1, {"a": [[3, 4]], "b": [[]]}), (2, {"a": [[5, 6]], "b": [[]]})],
        ),
    ],
)
def test_lines(files, text, expected):
    assert files.sequences(text, "a:2 b:4:sparse", maxErrors=3, traceLevel=0) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("|x 1\n|x 2\n", [(0, [[1]]), (1, [[2]])]),
        ("|x 1\n7 |x 2\n7 |x 3\n", [(0, [[1]]), (1, [[2]]), (2, [[3]])]),
        ("\n\n|x 1\n|x 2\n", [(2, [[1]]), (3, [[2]])]),  # lines are counted from the top of the file
    ],
)
def test_lines_without_ids_are_sequences(files, text, expected):
    assert [(key, s["x"]) for key, s in files.sequences(text, "x:1")] == expected


def test_skip_sequence_ids(files):
    found = files.sequences("3 |x 1\n3 |x 2\n", "x:1", skipSequenceIds=True)
    assert [(key, s["x"]) for key, s in found] == [(0, [[1]]), (1, [[2]])]


def test_alias(files):
    found = files.sequences("1 |f 1 |l 2\n", "x:1:dense:f y:1:dense:l")
    assert found == [(1, {"x": [[1]], "y": [[2]]})]


def test_last_line_without_newline_is_read_like_any_other(files, caplog):
    found = files.sequences("1 |x 1 2\n2 |x 3", "x:2")
    assert [s["x"] for _, s in found] == [[[1, 2]], [[3, 0]]]
    assert "does not end with a newline" in caplog.text


def test_streams_may_have_lengths_of_their_own(files):
    (minibatch,) = files.minibatches("0 |x 1 |y 9\n0 |x 2\n1 |x 3 |y 8\n", "x:1 y:1")
    assert minibatch.layouts["x"].num_samples == 3
    assert minibatch.layouts["y"].num_samples == 2
    with pytest.raises(ValueError, match="different lengths"):
        _ = minibatch.layout


def test_streams_are_in_alphabetical_order(files):
    assert [s.name for s in files.reader("1 |b 1 |A 2 |c 3\n", "c:1 b:1 A:1").streams] == ["A", "b", "c"]


def test_defines_mb_size(files):
    text = "0 |x 1 |y 9\n0 |x 2\n|x 3\n1 |x 4\n2 |x 5 |y 7\n2 |x 6 |y 6\n"
    inputs = "x=[dim=1;format=dense];y=[dim=1;format=dense;definesMBSize=true]"
    from cntkpy.readers import create_reader

    path = files.write(text)
    reader = create_reader(f'file="{path}";input=[{inputs}];randomize=false', "double")
    assert reader.samples_per_sweep == 3  # sequence 1 has no y and is left out
    reader.start_minibatch_loop(2, 0)
    minibatch = reader.get_minibatch()
    assert minibatch is not None
    assert minibatch.keys == [0]
    assert minibatch.streams["x"].ravel().tolist() == [1, 2, 3]


@pytest.mark.parametrize("size", [1, 5, 16, 1 << 20])
def test_chunk_size_changes_nothing_in_file_order(files, sequences, size):
    found = files.sequences(sequences, "x:1 s:5:sparse", chunkSizeInBytes=size)
    assert found == files.sequences(sequences, "x:1 s:5:sparse")


@pytest.mark.parametrize("block", [64, 100, 4096])
def test_index_does_not_depend_on_the_buffer(files, sequences, block):
    from cntkpy.readers.formats.text.index import IndexOptions, build_index

    path = str(files.write(sequences))
    small, large = build_index(path, IndexOptions(block=block)), build_index(path)
    assert small.begins.tolist() == large.begins.tolist()
    assert small.ends.tolist() == large.ends.tolist()
    assert small.table.lengths.tolist() == large.table.lengths.tolist()


def test_chunks_are_opened_when_the_next_sequence_does_not_fit(files):
    from cntkpy.readers.formats.text.index import IndexOptions, build_index

    path = str(files.write("".join(f"{i} |x {i}\n" for i in range(10))))  # seven bytes each
    assert build_index(path, IndexOptions(chunk_size=20)).table.first.tolist() == [0, 2, 4, 6, 8, 10]
    assert build_index(path, IndexOptions(chunk_size=21)).table.first.tolist() == [0, 3, 6, 9, 10]
    assert build_index(path, IndexOptions(chunk_size=1)).table.num_chunks == 10


def test_chunks_count_the_gaps_between_sequences(files):
    from cntkpy.readers.formats.text.index import IndexOptions, build_index

    path = str(files.write("".join(f"{i} |x 1\n{i + 100} |q 1\n" for i in range(4))))  # seven bytes and nine
    assert build_index(path, IndexOptions(main="x")).begins.tolist() == [0, 16, 32, 48]
    assert build_index(path, IndexOptions(main="x", chunk_size=23)).table.first.tolist() == [0, 2, 4]
    assert build_index(path, IndexOptions(main="x", chunk_size=22)).table.first.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("|a 1", True), ("|a\t1", True), ("|a|b", True), ("|a", True), ("|b 1|a 1", True), ("|a\x01", True), ("||a 1", True),
        ("|ab 1", False), ("a| 1", False), ("a 1", False), ("| a 1", False), ("|A 1", False), ("|b a 1", False), ("", False),
    ],
)  # fmt: skip
def test_lines_with_the_input_that_defines_the_size(files, line, counts):
    from cntkpy.readers.formats.text.index import IndexOptions, build_index

    for end in ("\n", ""):
        text = f"7 |a 1\n7 {line}\n9 {line}{end}"
        assert (
            build_index(str(files.write(text)), IndexOptions(main="a")).table.key(np.arange(1 + counts)).tolist()
            == [7, 9][: 1 + counts]
        )
        index = build_index(str(files.write(text)), IndexOptions(main="a"))
        assert np.broadcast_to(index.table.lengths, 1 + counts).tolist() == ([2, 1] if counts else [1])
        by_line = build_index(str(files.write(text)), IndexOptions(main="a", skip_sequence_ids=True))
        assert by_line.table.key(np.arange(1 + 2 * counts)).tolist() == ([0, 1, 2] if counts else [0])


@pytest.mark.parametrize(
    ("word", "random"),
    [
        *((word, True) for word in ("t", "true", "T", "True", "TRUE", "1", "auto", "Auto")),
        *((word, False) for word in ("f", "false", "F", "False", "FALSE", "0", '""', "none", "None", "NONE")),
    ],
)
def test_words_for_the_order(files, word, random):
    from cntkpy.readers.pipeline.randomize import BlockRandomizer

    reader = files.reader("1 |x 1\n", "x:1", randomize=word)
    assert isinstance(reader.source.timeline, BlockRandomizer) == random
    reader.close()


@pytest.mark.parametrize("randomize", [True, False])
def test_a_position_inside_a_sequence_means_the_next_one(files, tools, randomize):
    reader = files.reader("0 |x 1\n0 |x 2\n0 |x 3\n1 |x 4\n1 |x 5\n1 |x 6\n", "x:1", randomize=randomize)
    whole = [m.keys for m in tools["epoch"](reader, 3)]
    assert sorted(whole) == [[0], [1]]
    for position, rest in ((0, whole), (1, whole[1:]), (2, whole[1:]), (3, whole[1:]), (4, [])):
        reader.set_state({"minibatchSourcePosition": position, "epochEnd": 6})
        assert [m.keys for m in tools["rest"](reader)] == rest
    reader.close()
