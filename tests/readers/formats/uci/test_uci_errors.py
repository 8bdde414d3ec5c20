# ruff: noqa: E501  (tables of cases, a case a line)
"""Bad data and bad sections of UCIFastReader: every error names the place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cntkpy.cntk_config import ConfigError, parse
from cntkpy.readers import DataError, create_reader
from cntkpy.readers.formats.uci.parameters import UCIReaderParameters

pytestmark = pytest.mark.malformed

# text, sections, message, line
DATA = [
    ("", "features=[dim=1]", "is empty", None),
    (" \n\t\r\n\n", "features=[dim=1]", "is empty", None),
    ("1 2\n\n3\n", "features=[dim=2]", "has 1 fields, at least 2", 3),
    ("1 2\n3 4\n", "features=[dim=1;start=2]", "has 2 fields, at least 3", 1),
    ("1 2\n3 4\n", "features=[dim=1] L=[start=2]", "has 2 fields, at least 3", 1),
    ("a 1\n", "features=[dim=2]", "'a' is not a number, but field 0 is a feature .*line 1, column 1", 1),
    ("1 2\n1 x2\n", "features=[dim=2]", "'x2' .* field 1 is a feature .*line 2, column 3", 2),
    ("1 2x\n", "features=[dim=2]", "'2x'", 1),
    ("1 -\n", "features=[dim=2]", "'-'", 1),
    ("1 +\n", "features=[dim=2]", r"'\+'", 1),
    ("1 .\n", "features=[dim=2]", r"'\.'", 1),
    ("1 1.2.3\n", "features=[dim=2]", "'1.2.3'", 1),
    ("1 1e\n", "features=[dim=2]", "'1e'", 1),
    ("1 --1\n", "features=[dim=2]", "'--1'", 1),
    ("1 nan\n", "features=[dim=2]", "'nan'", 1),
    ("1 inf\n", "features=[dim=2]", "'inf'", 1),
    ("1 -inf\n", "features=[dim=2]", "'-inf'", 1),
    ("1 0x10\n", "features=[dim=2]", "'0x10'", 1),
    ("1 1_0\n", "features=[dim=2]", "'1_0'", 1),
    ("1,2\n", "features=[dim=2]", "'1,2'", 1),
    ("1 2\f3\n", "features=[dim=2]", "is not a number", 1),
    ("1 2\0\n", "features=[dim=2]", "is not a number", 1),
    ("1 \u0662\n", "features=[dim=2]", "is not a number, .*column 3", 1),
    ("caf\u00e9 x\n", "features=[dim=1;start=1]", "line 1, column 6", 1),
    (
        "0 1\n1 2\n3 1\n",
        "features=[dim=1;start=1] L=[start=0]",
        r"not specified in label mapping file: 3 \(.*line 3, column 1\)",
        3,
    ),
    ("1.0 1\n", "features=[dim=1;start=1] L=[start=0]", "label mapping file: 1.0", 1),
    (
        "0 1 stray\n",
        "features=[dim=1;start=1] L=[start=0]",
        "'stray' is not a number, and field 2 is not a label .*column 5",
        1,
    ),
    ("0 1 1a\n", "features=[dim=1;start=1] L=[start=0]", "'1a'", 1),
    ("0.5x 1\n", "features=[dim=1;start=1] R=[start=0;dim=1]", "the label '0.5x' is not a number", 1),
    ("yes 1\n", "features=[dim=1;start=1] R=[start=0;dim=1]", "the label 'yes' is not a number", 1),
    ("1 2\n" * 3000 + "\n\n1\n" + "1 2\n" * 3000, "features=[dim=2]", "has 1 fields", 3003),
    ("\xff\xfe1\0", "features=[dim=1]", "UTF-16", None),
]


@pytest.mark.parametrize(("text", "sections", "message", "line"), DATA)
def test_bad_data(tmp_path: Path, text: str, sections: str, message: str, line: int | None) -> None:
    found = error_of(tmp_path, text, sections)
    assert re.search(message, str(found)) and str(tmp_path / "data.txt") in str(found)
    assert found.line == line


def error_of(tmp_path: Path, text: str, sections: str) -> DataError:
    path, names = tmp_path / "data.txt", tmp_path / "labels.map"
    path.write_bytes(text.encode("latin-1" if text.startswith("\xff") else "utf-8"))
    names.write_text("0\n1\n2\n")
    sections = sections.replace(" L=[", f' ; labels=[labelDim=3;labelMappingFile="{names}";')
    sections = sections.replace(" R=[", " ; labels=[labelType=Regression;")
    with pytest.raises(DataError) as caught:
        r = create_reader(f'readerType=UCIFastReader ; randomize=none ; file="{path}" ; {sections}')
        r.start_minibatch_loop(10, 0)
        r.get_minibatch()
    return caught.value


@pytest.mark.parametrize(
    ("text", "sections", "hint"),
    [
        (
            "1,2,a\n",
            "features=[dim=2;start=1] L=[start=0]",
            "if ',' is between fields, write customDelimiter=\",\"",
        ),
        (
            "1;2;7\n",
            "features=[dim=2;start=1] R=[start=0]",
            "if ';' is between fields, write customDelimiter=\";\"",
        ),
        ("1,5 7\n", 'customDecimalPoint="," ; features=[dim=2;start=1] R=[start=0]', "counted from 0"),
        ("1,2\n", "features=[dim=2]", 'customDelimiter=",", or customDecimalPoint="," if it is the decimal point'),
        ("1;2,3;7\n", 'customDelimiter="," ; features=[dim=2;start=1] L=[start=0]', "createLabelMap"),
    ],
)
def test_other_separators_are_named(tmp_path: Path, text: str, sections: str, hint: str) -> None:
    assert hint in str(error_of(tmp_path, text, sections).diagnostic.hint)


MAPS = [
    (None, "does not exist", "createLabelMap"),
    ("", "is empty", ""),
    ("# only\n\n", "is empty", ""),
    ("a\nb\n\na\n", r"'a' occurs twice .*line 1 and line 4", ""),
    ("a\r\n a \n", "occurs twice", ""),
]


@pytest.mark.parametrize(("names", "message", "hint"), MAPS)
def test_bad_label_maps(tmp_path: Path, names: str | None, message: str, hint: str) -> None:
    path = tmp_path / "labels.map"
    (tmp_path / "data.txt").write_text("a 1\n")
    if names is not None:
        path.write_text(names)
    with pytest.raises(DataError, match=message) as caught:
        create_reader(
            f'readerType=UCIFastReader ; file="{tmp_path}/data.txt" ; features=[dim=1;start=1] ;'
            f'labels=[labelMappingFile="{path}"]'
        )
    assert str(path) in str(caught.value)
    assert hint in (caught.value.diagnostic.hint or "")


def test_a_label_that_looks_like_a_comment_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("#a 1\n")
    with pytest.raises(DataError, match="'#a' cannot stand in the label mapping file"):
        create_reader(
            f'readerType=UCIFastReader ; file="{tmp_path}/data.txt" ; features=[dim=1;start=1] ; allowMapCreation=true ;'
            f'labels=[labelMappingFile="{tmp_path}/labels.map"]'
        )
    assert not (tmp_path / "labels.map").exists()


SECTIONS = [
    ("", "no section of features"),
    ("features=[start=1]", "no section of features"),
    ("features=[dim=0]", "not a number of features"),
    ("features=[dim=x]", "x"),
    ("features=[dim=2;start=-1]", "counted from 0"),
    ("features=[dim=2] ; labels=[labelDim=2;start=2]", "label mapping file is missing"),
    ("features=[dim=2] ; labels=[labelType=categorie;start=2]", "categorie"),
    ('features=[dim=2] ; labels=[labelMappingFile="m";start=1]', "overlap|are features"),
    ('features=[dim=2;start=1] ; labels=[labelMappingFile="m";start=0;dim=2]', "single field"),
    ("features=[dim=2] ; labels=[labelType=regression;start=2;dim=0]", "not a number of labels"),
    ('features=[dim=2] ; labels=[labelType=regression;start=2;file="b"]', "one file"),
    ("features=[dim=2] ; randomize=sometimes", "sometimes"),
    ("features=[dim=2] ; randomize=-1", "-1 is CNTK's greatest size, and a number of records divides the epoch"),
    ('features=[dim=2] ; customDelimiter=";" ; customDecimalPoint=";"', "same as customDecimalPoint"),
    ('features=[dim=2] ; customDelimiter="5"', "part of numbers"),
    ('features=[dim=2] ; customDelimiter="."', "part of numbers"),
    ('features=[dim=2] ; customDecimalPoint="e"', "part of numbers"),
    ('features=[dim=2] ; customDelimiter="\u00a7"', "ASCII"),
    ("features=[dim=2] ; precision=half", "precision"),
]


@pytest.mark.parametrize(("sections", "message"), SECTIONS)
def test_bad_sections(tmp_path: Path, sections: str, message: str) -> None:
    (tmp_path / "data.txt").write_text("1 2 3\n")
    with pytest.raises(ConfigError, match=message):
        create_reader(f'readerType=UCIFastReader ; file="{tmp_path}/data.txt" ; {sections}')


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('customDelimiter=";,"', "only the first character of ';,' counts, ';'"),
        ('customDecimalPoint=",;"', "only the first character of ',;' counts, ','"),
        ('customDelimiter=";" ; customDecimalPoint=","', None),
    ],
)
def test_characters_that_do_not_count(settings: str, message: str | None) -> None:
    parameters = UCIReaderParameters(parse(f"file=x ; features=[dim=2] ; {settings}"))
    assert [text for _, text, _ in parameters.idle()] == ([message] if message else [])


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be opened"):
        create_reader(f'readerType=UCIFastReader ; file="{tmp_path}/x" ; features=[dim=1]')
    with pytest.raises(ConfigError, match="file"):
        create_reader("readerType=UCIFastReader ; features=[dim=1]")


@pytest.mark.parametrize(("random", "size", "samples"), [(8, 3, 24), (5, 5, None), (16, 4, 24), (100, 4, None)])
def test_ranges_that_do_not_fit(tmp_path: Path, random: int, size: int, samples: int | None) -> None:
    (tmp_path / "data.txt").write_text("1\n" * 24)
    r = create_reader(f'readerType=UCIFastReader ; file="{tmp_path}/data.txt" ; features=[dim=1] ; randomize={random}')
    with pytest.raises(ConfigError, match=f"randomize={random} must be a multiple of the minibatch size") as caught:
        r.start_minibatch_loop(size, 0, samples)
    assert caught.value.diagnostic.span is not None
