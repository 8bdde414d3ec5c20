"""Numbers in word class files that no array can hold (R17)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cntkpy.cntk_config import parse
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.language.parameters import SequenceReaderParameters
from cntkpy.readers.formats.language.vocabulary import _checked_classes, _usual_classes, load_word_classes


def test_a_class_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text("0 5 the 0\n1 3 cat 9223372036854775808\n")
    with pytest.raises(DataError, match=r"Line 2 .* does not hold whole numbers"):
        load_word_classes(SequenceReaderParameters(parse(f'wordclass="{path}"')))


fields = st.one_of(st.sampled_from([b"0", b"1", b"2", b"a", b"-1", b"1.5", b"1" * 19, b""]), st.binary(max_size=3))
usual = st.permutations(range(6)).map(
    lambda order: [b"%d %d w%d %d" % (number, 7 * number, number, number // 3) for number in order]
)


@given(usual, st.integers(0, 5), st.integers(0, 4), fields)
def test_column_by_column_is_line_by_line(lines: list[bytes], line: int, column: int, other: bytes) -> None:
    parts = lines[line].split()
    parts[column : column + 1] = [other]
    for given_lines in (lines, [*lines[:line], b" ".join(parts), *lines[line + 1 :]]):
        found = _usual_classes(given_lines)
        try:
            wanted = _checked_classes("f", given_lines)
        except DataError:
            assert found is None
            continue
        if found is not None:
            assert found.words == wanted.words
            np.testing.assert_array_equal(found.counts, wanted.counts)
            np.testing.assert_array_equal(found.classes, wanted.classes)
    assert _usual_classes(lines) is not None


@pytest.mark.parametrize("blank", [b" ", b"\t"])
def test_fields_are_those_of_their_lines(blank: bytes) -> None:
    usual_lines = [blank.join(fields) for fields in ((b"0", b"5", b"the", b"0"), (b"1", b"9", b"b", b"2"))]
    assert _usual_classes(usual_lines) is not None
    shifted = [blank.join(fields) for fields in ((b"0", b"5", b"the"), (b"0", b"1", b"9", b"b", b"2"))]
    assert b" ".join(shifted).split() == b" ".join(usual_lines).split()
    assert _usual_classes(shifted) is None
