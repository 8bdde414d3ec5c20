"""Numbers in word class files that no array can hold (R17)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cntk_config import parse
from readers.errors import DataError
from readers.formats.language.parameters import SequenceReaderParameters
from readers.formats.language.vocabulary import load_word_classes


def test_a_class_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text("0 5 the 0\n1 3 cat 9223372036854775808\n")
    with pytest.raises(DataError, match=r"Line 2 .* does not hold whole numbers"):
        load_word_classes(SequenceReaderParameters(parse(f'wordclass="{path}"')))
