"""Specifiers of Kaldi tables: what is understood, and that commands are never executed."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.kaldi import object_kernels as k
from cntkpy.readers.formats.kaldi.archive import open_table
from cntkpy.readers.formats.kaldi.parameters import specifier_of
from cntkpy.readers.formats.kaldi.specifier import (
    Place,
    command_for_file,
    parse_place,
    parse_read_specifier,
    parse_write_specifier,
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a/b.ark", Place("a/b.ark")),
        ("a:b.ark:17", Place("a:b.ark", 17)),
        ("a b.ark", Place("a b.ark")),
        ("c:\\x.ark", Place("c:\\x.ark")),
        ("x.gz", Place("x.gz", 0, True)),
        ("gunzip -c a.gz |", Place("a.gz", 0, True)),
        ("zcat 'my file'|", Place("my file", 0, True)),
        ("gzip -d -c x |", Place("x", 0, True)),
    ],
)
def test_extended_filenames(text: str, place: Place) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        ("f:9[1:2]", (1, 2), None),
        ("f:9[1:2,3:4]", (1, 2), (3, 4)),
        ("f:9[:,3:4]", None, (3, 4)),
        ("f:9[,3:4]", None, (3, 4)),
        ("f:9[]", None, None),
    ],
)
def test_ranges(text: str, rows: tuple[int, int] | None, columns: tuple[int, int] | None) -> None:
    assert parse_place(text, ranges=True) == Place("f", 9, False, rows, columns)


PIPES = [
    "touch {0} |", "| touch {0}", "gunzip -c a.gz; touch {0} |", "gunzip -c $(touch {0}) |", "gunzip -c `touch {0}` |",
    "zcat a.gz | touch {0} |", "gunzip -c *.gz |", "gunzip -c a.gz b.gz |", "zcat -f |", "gunzip -c 'a |",
    "zcat a > {0} |", "cat a.ark |", "|", " | ",
]  # fmt: skip


@pytest.mark.parametrize("pipe", PIPES)
def test_commands_are_refused_and_never_run(tmp_path: Path, pipe: str) -> None:
    made = tmp_path / "made"
    command = pipe.format(made)
    script = tmp_path / "s.scp"
    script.write_text(f"key {command}\n")
    for specifier in (f"ark:{command}", f"scp:{command}", f"scp:{script}", f"ark,p:{command}"):
        with pytest.raises(DataError, match="commands in specifiers are not executed"):
            open_table(specifier, k.MATRICES)
    for specifier in (f"ark:{command}", f"ark,t:{command}", f"ark,scp:{command},x", f"scp:{command}"):
        with pytest.raises(DataError, match="is a shell command; commands in specifiers are not executed"):
            parse_write_specifier(specifier)
    assert not made.exists()


@pytest.mark.parametrize(
    ("command", "once", "instead"),
    [
        ("copy-feats scp:a.scp ark:- ", "copy-feats scp:a.scp ark:data.ark", "ark:data.ark"),
        (
            "apply-cmvn a 'scp:b' ark:- | add-deltas ark:- ark:-",
            "apply-cmvn a 'scp:b' ark:- | add-deltas ark:- ark:data.ark",
            "ark:data.ark",
        ),
        (
            'ali-to-pdf m "ark:gunzip -c d/ali.*.gz |" ark:- | ali-to-post ark:- ark:-',
            'ali-to-pdf m "ark:gunzip -c d/ali.*.gz |" ark:data.ark',
            "ark:data.ark",
        ),
        ("cat a.ark b.ark", "cat a.ark b.ark > data.ark", "ark:data.ark"),
    ],
)
def test_the_command_that_makes_the_file_once(command: str, once: str, instead: str) -> None:
    assert command_for_file(command) == (once, instead)
    with pytest.raises(DataError) as error:
        parse_read_specifier(f"ark:{command} |", "rx.txt: ")
    assert once in str(error.value.diagnostic.hint) and instead in str(error.value.diagnostic.hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("feats.scp", "'feats.scp' is not a specifier of a table"),
        ("ark,x:f", "unknown option 'x'"),
        ("ark:-", "standard input cannot be read"),
        ("scp:", "standard input cannot be read"),
        ("", "not a specifier"),
    ],
)
def test_errors_of_reading(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_read_specifier(text)


def test_a_table_in_place_of_the_file_that_names_it(tmp_path: Path) -> None:
    """Nothing of it is in the message."""
    for name, content in (("a.ark", b"u0 \0BFM " + bytes(3000)), ("a.scp", b"u0 a.ark:3\n" * 3000)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match="is not a file of one line with a specifier") as error:
            specifier_of(str(tmp_path / name))
        assert f"scp:{tmp_path / name} if it is a script file" in str(error.value.diagnostic.hint)
    with pytest.raises(DataError) as error:
        parse_read_specifier("x" * 3000)
    assert len(str(error.value)) < 120


def test_specifiers_of_writing() -> None:
    one = parse_write_specifier("ark,scp,t:a.ark, b.scp")
    assert (one.archive, one.script, one.as_text) == ("a.ark", "b.scp", True)
    assert parse_write_specifier("scp,ark:b.scp,a.ark").archive == "a.ark"
    assert parse_write_specifier("ark:-").archive == "-"
    assert parse_write_specifier("scp,p:x.scp").script == "x.scp"
    for text, message in (
        ("ark,scp:a", "does not name an archive and"),
        ("ark:", "names no file"),
        ("ark,scp:-,b", "no offsets"),
        ("ark,q:b", "unknown option 'q'"),
        ("b", "not a specifier"),
    ):
        with pytest.raises(DataError, match=message):
            parse_write_specifier(text)


@given(st.text(alphabet="arkscp:,t-|[]0123 .gz\n'\"", max_size=30))
def test_any_text_is_understood_or_refused(text: str) -> None:
    for parse in (parse_read_specifier, parse_write_specifier, lambda t: parse_place(t, ranges=True)):
        with contextlib.suppress(DataError):
            parse(text)
