"""Tables (CSV, TSV) in `cntkpy convert`: headers, delimiters, classes by name, every error."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.commands.cli import main
from cntkpy.commands.tools.convert import convert
from cntkpy.readers.convert.batches import parse_stream
from cntkpy.readers.convert.named_columns import NamedColumns
from cntkpy.readers.convert.tables import from_csv
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.tables.csv.text import is_number

FLOWERS = "width,species,height\n1.5,rose,2\n-3e2,aster,4\n0.25,rose,6\n"
"""The classes in order: aster, rose."""


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "labels"),
    [
        ("a.csv", FLOWERS, None),
        ("a.csv", FLOWERS, "species"),
        ("a.csv", FLOWERS, "2"),
        ("a.csv", FLOWERS.replace(",", ";"), None),
        ("a.tsv", FLOWERS.replace(",", "\t"), None),
        ("a.csv", "\ufeff" + FLOWERS.replace("\n", "\r\n"), "species"),
        ("a.csv", FLOWERS.partition("\n")[2], None),
        ("a.csv", FLOWERS.replace("rose", '"rose"').replace(",2", ", 2 ") + "\n\n", None),
    ],
)
def test_a_table(here, capsys, name: str, text: str, labels: str | None) -> None:
    (here / name).write_bytes(text.encode())
    assert convert([name], "a.ctf", columns=NamedColumns(labels)) == 0
    assert Path("a.ctf").read_text() == (
        "0 |features 1.5 2 |labels 1:1\n1 |features -300 4 |labels 0:1\n2 |features 0.25 6 |labels 1:1\n"
    )
    assert Path("a.labels.txt").read_text() == "aster\nrose\n"
    said = capsys.readouterr().out
    assert "features (dense 2), labels (class 2)" in said
    assert "a.labels.txt: the 2 classes of labels: aster, rose" in said


def test_classes_that_are_numbers_are_in_their_order(here) -> None:
    Path("a.csv").write_text("x,y\n1,10\n2,9\n3,-1\n")
    assert convert(["a.csv"], "a.ctf", columns=NamedColumns("y"), quiet=True) == 0
    assert Path("a.labels.txt").read_text() == "-1\n9\n10\n"
    assert Path("a.ctf").read_text().splitlines()[0] == "0 |features 1 |labels 2:1"


def test_classes_of_another_table(here, capsys) -> None:
    Path("a.csv").write_text("x,y\n1,rose\n")
    Path("names.txt").write_text("aster\nlily\nrose\n")
    assert convert(["a.csv", "names.txt"], "b.ctf") == 0
    assert Path("b.ctf").read_text() == "0 |features 1 |labels 2:1\n"
    assert not Path("b.labels.txt").exists()
    Path("a.csv").write_text("x,y\n1,rose\n2,rosa\n")
    assert convert(["a.csv", "names.txt"], "c.ctf") == 1
    said = capsys.readouterr().err
    assert "a.csv:3: the class 'rosa' in column 'y' is not listed" in said
    assert "did you mean 'rose'?" in said
    assert not Path("c.ctf").exists()


def test_streams_from_left_to_right(here) -> None:
    Path("a.csv").write_text("a,b,c,d\n1,2,red,3\n4,5,blue,6\n")
    assert convert(["a.csv"], "a.npz", ("x:2", "colour:5:class", "y:1"), quiet=True) == 0
    with np.load("a.npz") as found:
        assert found["x"].tolist() == [[1, 2], [4, 5]]
        assert found["colour"].tolist() == [1, 0]
        assert found["y"].tolist() == [[3], [6]]
    assert Path("a.colour.txt").read_text() == "blue\nred\n"


def test_double_precision(here) -> None:
    Path("a.csv").write_text("x,y\n0.12345678901234567,a\n")
    assert convert(["a.csv"], "a.ctf", precision="double", quiet=True) == 0
    assert repr(0.12345678901234567) in Path("a.ctf").read_text()


@pytest.mark.parametrize(
    ("text", "words", "options", "message", "cure"),
    [
        ("", [], {}, "a.csv has no rows", ""),
        ("x,y\n", [], {}, "a.csv has no rows after its header", ""),
        ("x,y\n1,2\n", [], {}, "all columns hold numbers: which one holds the classes?", "--labels y, or --target y"),
        ("x,y\na,b\n", [], {}, "columns 'x', 'y' hold texts: which one holds the classes?", "--labels y"),
        ("x,y\n1,a\n", [], {"labels": "z"}, "a.csv has no column 'z'", "its columns are x, y"),
        ("width,kind\n1,a\n", [], {"labels": "kinds"}, "no column 'kinds'", "did you mean 'kind'?"),
        ("1,a\n", [], {"labels": "kind"}, "no column 'kind'", "by its number, 1 to 2"),
        ("x,y\n1,a\n2\n", [], {}, "a.csv:3: the row has 1 columns, but the first one has 2", "quote texts"),
        ("x,y\n1,a\n,b\n", [], {}, "a.csv:3: column 'x' is '', which is not a number", "--missing NUMBER"),
        ("x,y\n1,a\nNA,b\n", [], {}, "a.csv:3: column 'x' is 'NA', which is not a number", "--missing NUMBER"),
        ("x;y\n1;a\n2,5;b\n", [], {}, "column 'x' is '2,5', which is not a number", "decimal point"),
        ("x,y\n1,a\nred,b\n", [], {}, "column 'x' is 'red', which is not a number", "--drop 'x'"),
        ("x,y\n1,a\n1_0,b\n", [], {}, "column 'x' is '1_0', which is not a number", ""),
        ("x,y\n1,a\n2,\n", [], {}, "a.csv:3: column 'y' is empty, where the name of a class is expected", "leave the"),
        (",x,y\n0,1,a\n", [], {}, "column 1 has no name in the header; is it the number of the row?", "index=False"),
        ("x,x,y\n1,2,a\n", [], {}, "two columns are called 'x'", "rename one"),
        ("y\na\n", [], {}, "a.csv has one column, and that holds the classes", ""),
        ('x,y\n1,"a\n', [], {}, "a.csv cannot be read as a table: unexpected end of data", ""),
        ("x,y\n1,\udce9\n", [], {}, "a.csv:2 is not text in UTF-8", "iconv"),
        ("x,y\n1,a\ninf,b\n", [], {}, "inf and nan cannot be written as text", "npz"),
        ("x,y\n1,a\n", [], {"streams": ("x:3",)}, "a.csv has 2 columns, but the streams have 3", "from left to right"),
        ("x,y\n1,a\n", [], {"streams": ("x:2:sparse",)}, "a table has no sparse streams", "dense"),
        ("x,y\n1,a\n", [], {"streams": ("x:1", "y:1:class"), "labels": "y"}, "both say what", "use one of them"),
        ("x,y\n1,a\n2,b\n", [], {"streams": ("x:1", "y:1:class")}, "has 2 classes, not 1: a, b", "--stream y:2:class"),
        ("x,y\n1,a\n", ["gone.txt"], {}, "(gone.txt) cannot be read", ""),
        ("x,y\n1,a\n", ["a.csv", "a.csv"], {}, "a table is one file, and one of class names", ""),
        ("x,y\n1,2\n", ["names.txt"], {"streams": ("x:2",)}, "has names of classes, but no stream has classes", ""),
    ],
)
def test_what_cannot_be_converted(here, capsys, text, words, options, message: str, cure: str) -> None:
    Path("a.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    Path("names.txt").write_text("a\nb\n")
    before = sorted(here.iterdir())
    columns = NamedColumns(options.get("labels"))
    assert convert(["a.csv", *words], "b.ctf", options.get("streams", ()), columns=columns) in (1, 2)
    said = capsys.readouterr().err
    assert message in said
    assert cure in said
    assert "Traceback" not in said
    assert sorted(here.iterdir()) == before


def test_other_formats_have_no_columns_with_names(here, capsys) -> None:
    Path("a.ctf").write_text("|x 1\n")
    assert convert(["a.ctf"], "b.ctf", columns=NamedColumns("x")) == 2
    assert "--labels is about the columns of a table, and this is none" in capsys.readouterr().err
    assert convert(["a.ctf"], "b.csv") == 2
    assert "csv is only read" in capsys.readouterr().err


def test_the_file_of_names_is_none_of_the_inputs(here, capsys) -> None:
    Path("a.csv").write_text("x,y\n1,a\n")
    Path("b.labels.txt").symlink_to("a.csv")
    assert convert(["a.csv"], "b.ctf") == 2
    assert "would be written over what is read" in capsys.readouterr().err


def test_in_pieces(here, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(257, 3)).astype(np.float32)
    kinds = rng.integers(0, 4, 257)
    rows = [[*map(str, row), f"k{kind}"] for row, kind in zip(values.tolist(), kinds, strict=True)]
    Path("a.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    monkeypatch.setattr("cntkpy.readers.convert.sources.BATCH", 10)
    found = from_csv(["a.csv"], [])
    batches = list(found.batches)
    assert [len(one.keys) for one in batches] == [10] * 25 + [7]
    np.testing.assert_array_equal(np.concatenate([one.parts["features"].rows for one in batches]), values)
    np.testing.assert_array_equal(np.concatenate([one.parts["labels"].rows.indices for one in batches]), kinds)


def test_blank_rows_quotes_and_signs(here) -> None:
    """Rows without anything in them do not count, wherever they stand; cells are those that Python reads."""
    Path("a.csv").write_text('\n  \nx,y\n,\n+1.5,"a, b"\n   \n 2 ,"c ""d"""\n\n1e400,"e\nf"\n\u0663,5" pipe\n,\n\n')
    found = from_csv(["a.csv"], [])
    assert found.names["labels"] == ['5" pipe', "a, b", 'c "d"', "e\nf"]
    (batch,) = found.batches
    assert batch.parts["features"].rows[:, 0].tolist() == [1.5, 2, float("inf"), 3]
    assert batch.parts["labels"].rows.indices.tolist() == [1, 2, 3, 0]


def test_several_blocks(here, monkeypatch) -> None:
    """An error is placed in its line, whichever block it is in, with blank rows and texts of several lines before."""
    monkeypatch.setattr("cntkpy.readers.formats.tables.csv.text.BLOCK_BYTES", 100)
    rows = [f'{i},"k\n{i % 3}"\n' + "\n" * (i % 2) for i in range(100)]
    Path("a.csv").write_text("x,y\n" + "".join(rows))
    batches = list(from_csv(["a.csv"], []).batches)
    assert len(batches) > 5
    assert np.concatenate([one.parts["features"].rows[:, 0] for one in batches]).tolist() == list(range(100))
    assert [key for one in batches for key in one.keys] == list(range(100))
    rows[90] = 'z,"k\n0"\n'
    Path("a.csv").write_text("x,y\n" + "".join(rows))
    line = ("x,y\n" + "".join(rows[:90])).count("\n") + 2  # where the row ends
    with pytest.raises(DataError, match=rf"a\.csv:{line}: column 'x' is 'z', which is not a number"):
        list(from_csv(["a.csv"], []).batches)
    Path("a.csv").write_text("x,y\n" + "".join(rows[:50]) + "7\n" + "".join(rows[50:]))
    line = ("x,y\n" + "".join(rows[:50])).count("\n") + 1
    with pytest.raises(DataError, match=rf"a\.csv:{line}: the row has 1 columns"):
        list(from_csv(["a.csv"], []).batches)


letters = st.characters(codec="utf-8", categories=["L", "M", "N", "P", "S"])
cells = st.tuples(letters, st.text(letters | st.just(" "), max_size=4), letters).map("".join) | letters
cells = cells.filter(lambda one: not is_number(one))


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.floats(width=32, allow_nan=False, allow_infinity=False), cells), min_size=1, max_size=9),
    st.sampled_from(",;\t"),
)
def test_any_names_come_back(tmp_path_factory, rows, delimiter: str) -> None:
    path = tmp_path_factory.getbasetemp() / ("any.tsv" if delimiter == "\t" else "any.csv")
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows([("x", "y"), *rows])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    found = from_csv([str(path)], [parse_stream("x:1"), parse_stream("y:9:class")])
    names = found.names["y"]
    assert sorted({name for _, name in rows}) == names
    (batch,) = found.batches
    assert batch.parts["x"].rows[:, 0].tolist() == [x for x, _ in rows]
    assert [names[i] for i in batch.parts["y"].rows.indices] == [name for _, name in rows]


PRICES = "rooms,area,city,price\n3,50.5,a,100.5\n4,,b,200\n"


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_columns_of_a_table_are_kept(here, capsys, ending: str) -> None:
    """So `columns = (...)`, `alias` and `filter` go on with the new file."""
    Path("p.csv").write_text(PRICES)
    assert main(["convert", "p.csv", f"p.{ending}"]) == 0
    assert (
        "2 rows of the columns rooms (int64), area (double), city (string), price (double)" in capsys.readouterr().out
    )
    table = pq.read_table("p.parquet") if ending == "parquet" else pyarrow.feather.read_table("p.arrow")
    assert table.to_pydict() == {"rooms": [3, 4], "area": [50.5, None], "city": ["a", "b"], "price": [100.5, 200.0]}
    assert main(["convert", "p.csv", "p.csv", "--to", ending]) == 2
    assert Path("p.csv").read_text() == PRICES


def test_many_rows_are_copied_in_row_groups(here, monkeypatch) -> None:
    monkeypatch.setattr("cntkpy.readers.formats.tables.csv.text.BLOCK_BYTES", 100)
    monkeypatch.setattr("cntkpy.readers.convert.columns.GROUP", 400)
    Path("p.csv").write_text("x,y\n" + "".join(f"{i},t{i % 3}\n" for i in range(200)))
    assert main(["convert", "p.csv", "p.parquet", "--quiet"]) == 0
    found = pq.ParquetFile("p.parquet")
    assert found.metadata.num_row_groups > 2
    assert found.read().to_pydict() == {"x": list(range(200)), "y": [f"t{i % 3}" for i in range(200)]}


def test_prices_are_values_and_no_classes(here, capsys) -> None:
    Path("p.csv").write_text("rooms,price\n3,100.5\n4,200\n")
    assert main(["convert", "p.csv", "p.ctf", "--labels", "price"]) == 0
    assert Path("p.ctf").read_text().split() == [
        "0",
        "|features",
        "3",
        "|labels",
        "100.5",
        "1",
        "|features",
        "4",
        "|labels",
        "200",
    ]
    assert not Path("p.labels.txt").exists()
    Path("p.csv").write_text("rooms,price\n3,7\n4,5.0\n")
    assert main(["convert", "p.csv", "p.ctf", "--labels", "price"]) == 0
    assert Path("p.labels.txt").read_text().splitlines() == ["5.0", "7"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_prices_of_whole_numbers_are_no_classes(here, capsys, kind: str) -> None:
    """Nearly as many numbers as rows: an error that names --target. Numbers that recur are classes."""
    Path("p.csv").write_text("rooms,price\n" + "".join(f"{i % 5},{100000 + i * 10}\n" for i in range(40)))
    assert kind == "csv" or main(["convert", "p.csv", f"p.{kind}", "-q"]) == 0
    assert main(["convert", f"p.{kind}", "p.ctf", "--labels", "price"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "column 'price' has 40 different numbers in 40 rows: are they classes?" in said and "--target 'price'" in said
    )
    assert not Path("p.ctf").exists()
    assert main(["convert", f"p.{kind}", "p.ctf", "--target", "price", "-q"]) == 0
    assert Path("p.ctf").read_text().splitlines()[1] == "1 |features 1 |labels 100010"
    assert main(["convert", f"p.{kind}", "p.ctf", "--labels", "rooms", "-q"]) == 0
    assert Path("p.ctf").read_text().splitlines()[1] == "1 |features 100010 |labels 1:1"


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_columns_are_left_out_and_missing_numbers_filled_in(here, capsys, kind: str) -> None:
    Path("p.csv").write_text(PRICES)
    assert kind == "csv" or main(["convert", "p.csv", f"p.{kind}", "-q"]) == 0
    assert main(["convert", f"p.{kind}", "p.ctf", "--target", "price"]) == 1
    assert "--drop" in capsys.readouterr().err
    assert main(["convert", f"p.{kind}", "p.ctf", "--target", "price", "--drop", "city"]) == 1
    said = capsys.readouterr().err
    assert "--missing NUMBER" in said if kind == "csv" else "a value is missing (null)" in said
    words = ["--target", "price", "--drop", "city", "--missing", "-1"]
    assert main(["convert", f"p.{kind}", "p.ctf", *words, "-q"]) == 0
    assert Path("p.ctf").read_text() == "0 |features 3 50.5 |labels 100.5\n1 |features 4 -1 |labels 200\n"
    if kind == "csv":
        assert main(["convert", "p.csv", "p.ctf", "--stream", "x:2", "--stream", "y:1", *words[2:], "-q"]) == 0
        assert Path("p.ctf").read_text() == "0 |x 3 50.5 |y 100.5\n1 |x 4 -1 |y 200\n"
        Path("p.csv").write_text("a,price\n1,2\n3,\n")
        assert main(["convert", "p.csv", "p.ctf", *words[:2], *words[4:], "-q"]) == 1  # what is to be predicted is not
        assert "p.csv:3: column 'price' is ''" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["p.ctf", "--target", "price", "--labels", "city"], "two ways to read one column"),
        (["p.ctf", "--target", "price", "--stream", "x:4"], "--target and --stream both say"),
        (["p.ctf", "--target", "price", "--drop", "price"], "--target price is left out by --drop"),
        (["p.ctf", "--target", "price", "--drop", "citi"], "did you mean 'city'?"),
        (["p.ctf", "--target", "price", "--missing", "nan"], "--missing nan is not finite"),
        (["p.parquet", "--missing", "0"], "the columns are copied with their missing values"),
        (
            ["p.parquet", *(word for name in ("rooms", "area", "city", "price") for word in ("--drop", name))],
            "leaves out all",
        ),
    ],
)
def test_options_that_do_not_fit(here, capsys, words: list[str], said: str) -> None:
    Path("p.csv").write_text(PRICES)
    assert main(["convert", "p.csv", *words]) in (1, 2)
    assert said in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in here.iterdir()] == ["p.csv"]


def test_a_copy_without_a_column_goes_on_with_columns_and_filter(here, capsys) -> None:
    Path("p.csv").write_text(PRICES)
    assert main(["convert", "p.csv", "p.parquet", "--drop", "area", "-q"]) == 0
    Path("c.cntk").write_text(
        "reader=[deserializers=([type=ParquetDeserializer;file=p.parquet;filter=\"city == 'b'\";"
        "input=[features=[dim=2;columns=(rooms:price)]]])]"
    )
    assert main(["convert", "configFile=c.cntk", "reader", "p.ctf", "-q"]) == 0
    assert Path("p.ctf").read_text() == "1 |features 4 200\n"
