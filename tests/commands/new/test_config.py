"""`cntkpy new config`: a table becomes a configuration that trains, compared with linear models."""

from __future__ import annotations

import csv
import http.server
import re
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import table_data as tables

from cntkpy.readers.formats.tables.filters import draw

pytest.importorskip("pyarrow")


def rows_of(path: Path) -> list[dict[str, str]]:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def final(log: str, name: str) -> float:
    """A value of the test."""
    return float(re.findall(rf"Final Results: .*?\b{name} = ([\d.e+-]+)", log)[-1])


def parts(rows: list[dict[str, str]], target: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows of training and of test, bool[n]."""
    numbers = draw(np.arange(len(rows)), 1)
    known = np.array([row[target] != "" for row in rows])
    return (numbers < 0.8) & known, (numbers >= 0.9) & known


@pytest.mark.thorough
def test_regression(cntkpy, tmp_path: Path) -> None:
    """Mixed columns with missing values: as good as least squares on the same rows."""
    tables.houses(tmp_path / "houses.csv")
    got = cntkpy("new", "config", "houses.csv", "--target", "price")
    assert got.code == 0, got.err
    assert "houses.cntk: regression of 'price'" in got.out
    assert "left out: Id (another value in every row" in got.out and "left out: country (the same value" in got.out
    assert re.search(
        r"missing numbers: the mean of the training part, and an indicator: area \(m2\) \(\d+\), built", got.out
    )
    assert re.search(r"missing categories: the category <missing>: city \(\d+\)", got.out)
    assert cntkpy("check", "--strict", "--data", "houses.cntk").code == 0
    run = cntkpy("run", "houses.cntk")
    assert run.code == 0, run.err
    rows = rows_of(tmp_path / "houses.csv")
    training, test = parts(rows, "price")
    x = tables.design(rows, "price", training, ("Id", "country"))
    y = np.array([float(row["price"] or 0) for row in rows])
    linear = np.abs(tables.least_squares(x, y, training) - y)[test].mean()
    ours = final(run.out + run.err, "absoluteError")
    assert ours < 1.1 * linear, (ours, linear)
    assert cntkpy("run", "houses.cntk", "command=predict").code == 0
    predicted = np.loadtxt(tmp_path / "houses.predictions.prediction")
    assert len(predicted) == len(rows)
    np.testing.assert_allclose(np.abs(predicted - y)[test].mean(), ours, rtol=1e-4)


@pytest.mark.thorough
def test_three_classes_with_names(cntkpy, tmp_path: Path) -> None:
    tables.flowers(tmp_path / "flowers.tsv")
    got = cntkpy("new", "config", "flowers.tsv", "--target", "species")
    assert got.code == 0, got.err
    assert "classification of 'species', 3 classes (Iris setosa, Iris versicolor, Iris virginica)" in got.out
    errors, linear, rows, test = trained(cntkpy, tmp_path / "flowers.tsv", "species")
    assert errors <= linear + 0.07, (errors, linear)  # two rows of thirty
    predicted = np.array((tmp_path / "flowers.predictions.posterior").read_text().split("\n")[: len(rows)])
    wrong = predicted != np.array([row["species"] for row in rows])
    np.testing.assert_allclose(wrong[test].mean(), errors, atol=1e-4)


@pytest.mark.thorough
def test_two_classes_of_numbers(cntkpy, tmp_path: Path) -> None:
    tables.passengers(tmp_path / "train.csv")
    got = cntkpy("new", "config", "train.csv", "--target", "Survived")
    assert got.code == 0, got.err
    assert "classification of 'Survived', 2 classes (0, 1)" in got.out and "--task regression" in got.out
    assert "missing categories: the category <missing>: Embarked" in got.out
    errors, linear, *_ = trained(cntkpy, tmp_path / "train.csv", "Survived")
    assert errors <= linear + 0.04, (errors, linear)
    # Rows to predict have no target, a category that training lacks, and a column whose values are all missing.
    new = "PassengerId,Pclass,Sex,Age,Embarked\n1,3,male,,S\n2,1,female,,X\n3,1,female,,\n"
    (tmp_path / "new.csv").write_text(new)
    got = cntkpy("run", "train.cntk", "command=predict", "newRows=new.csv")
    assert got.code == 0, got.err
    assert (tmp_path / "train.predictions.posterior").read_text().split() == ["0", "1", "1"]


def trained(cntkpy, path: Path, target: str) -> tuple[float, float, list[dict[str, str]], np.ndarray]:
    """Train, test and predict; errors of the test, those of logistic regression, the rows, those of the test."""
    config = f"{path.stem}.cntk"
    assert cntkpy("check", "--strict", "--data", config).code == 0
    run = cntkpy("run", config)
    assert run.code == 0, run.err
    assert cntkpy("run", config, "command=predict").code == 0
    rows = rows_of(path)
    training, test = parts(rows, target)
    names = sorted({row[target] for row in rows})
    classes = np.array([names.index(row[target]) for row in rows])
    guessed = tables.logistic(tables.design(rows, target, training), classes, training, len(names))
    errors = re.findall(r"Final Results: .*?errors = ([\d.]+)(%?)", run.out + run.err)[-1]
    return float(errors[0]) / (100 if errors[1] else 1), float((guessed != classes)[test].mean()), rows, test


X = [((i * 37) % 100) / 10 for i in range(200)]
"""Numbers of 200 rows."""


def table(header: str, *columns: Callable[[int], object], rows: int = 200, mark: str = ",") -> str:
    """The text of a table: a header, and a function of the row for each column."""
    lines = [header] * bool(header)
    return "\n".join([*lines, *(mark.join(str(cell(i)) for cell in columns) for i in range(rows))]) + "\n"


def number(i: int) -> float:
    return X[i]


def price(i: int) -> float:
    return 3.5 * X[i] + i % 3 + 0.25


def name(i: int) -> str:
    return f"Person {i}"


REFUSED = [
    ("no file", None, [], "there is no file 'd.csv'", ""),
    ("no target", table("a,y", number, price), ["--target", "Y"], "has no column 'Y'", "did you mean 'y'?"),
    ("texts", table("Name,a,y", name, number, price), [], "'Name' (200 different texts in 200 rows", "--drop Name"),
    ("no header", table("", number, price), [], "has no header, for its first row has the number 0.0", "by its number"),
    ("a year in the header", table("2019,y", number, price), ["--target", "2"], "is it a header?", "y2019, not 2019"),
    (
        "decimal commas",
        table("a;y", lambda i: f"{i % 9},5", lambda i: f"{i}", mark=";"),
        [],
        "numbers with commas or signs, such as '0,5'",
        "decimal=','",
    ),
    (
        "decimal commas of y",
        table("a;y", number, lambda i: f"{i},5", mark=";"),
        [],
        "numbers with commas or signs",
        "decimal=','",
    ),
    ("money", table("a,y", lambda i: f'"$1,{i:03d}.50"', price), [], "such as '$1,000.50'", "write 1234.5"),
    ("equal names", table("a,a,y", number, number, price), [], "two columns are called 'a'", "rename one"),
    ("no name", table(",a,y", lambda i: i, number, price), [], "column 1 has no name in the header", "index=False"),
    ("nothing to learn", table("a,y", number, lambda i: 7), [], "'7' in all rows", ""),
    ("no values of y", table("a,y", number, lambda i: ""), [], "the target 'y' has no values", "--target NAME"),
    ("notes", table("a,y", number, name), [], "200 different texts in 200 rows: these are no classes", "few classes"),
    ("dates as y", table("a,y", number, lambda i: f"2024-01-{i % 28 + 1:02d}"), [], "neither a number nor a class", ""),
    ("texts as numbers", table("a,y", number, lambda i: "uv"[i % 2]), ["--task", "regression"], "has texts", "--task"),
    ("classes of prices", table("a,y", number, price), ["--task", "classification"], "that are no classes", "--task"),
    ("few rows", table("a,y", number, price, rows=9), [], "9 rows have a value of 'y': too few", "30 rows"),
    (
        "one value",
        table("a,y", lambda i: 5, price),
        [],
        "no column to predict 'y' from",
        "a (the same value in all rows)",
    ),
    ("a sign", table("a # b,y", number, price), [], "'a # b' cannot be written in a configuration", "--drop"),
    ("large", table("-a,y", lambda i: "1e300" if i == 9 else X[i], price), [], "values above 1e+18", "--drop=-a"),
    ("a bracket", table("[a,y", number, price), [], "'[a' cannot be written in a configuration", "--drop"),
    ("infinite", table("a,y", lambda i: "inf" if i == 9 else X[i], price), [], "'a' has infinite values", "--drop a"),
    ("a class with a sign", table("a,y", number, lambda i: f"#{i % 2}"), [], "the class '#0'", "without #"),
    (
        "another kind",
        table("a,y", number, price),
        ["--column", "a=catgory"],
        "does not say what",
        "did you mean 'category'?",
    ),
    (
        "a kind of texts",
        table("c,y", lambda i: "uv"[i % 2], price),
        ["--column", "c=number"],
        "'c' is string, not numbers",
        "",
    ),
    (
        "both",
        table("a,y", number, price),
        ["--drop", "a", "--column", "a=number"],
        "is for columns to predict from",
        "",
    ),
    ("no target left", table("a,y", number, price), ["--drop", "y"], "leaves the target out", ""),
    ("no such column", table("abc,y", number, price), ["--drop", "abd"], "has no column 'abd'", "did you mean 'abc'?"),
]


@pytest.mark.parametrize(
    ("text", "options", "said", "hint"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_tables_that_are_refused(cntkpy, tmp_path: Path, text, options, said: str, hint: str) -> None:
    target = [] if "--target" in options else ["--target", "y"]
    got = cntkpy("new", "config", "d.csv", *target, *options, files={"d.csv": text} if text else {})
    assert got.code in (1, 2) and got.out == ""
    printed = " ".join(got.err.split())
    assert said in printed and hint in printed and "Traceback" not in printed
    assert {path.name for path in tmp_path.iterdir()} <= {"d.csv"}


TAKEN = [
    ("an id", table("PassengerId,a,y", lambda i: i + 1, number, price), [], ["left out: PassengerId (another value"]),
    ("an id that is kept", table("n,y", lambda i: i, price), ["--column", "n=number"], ["numbers: n\n"]),
    (
        "dates",
        table("when,a,y", lambda i: f"2024-01-{i % 28 + 1:02d}", number, price),
        [],
        ["left out: when (dates are"],
    ),
    ("booleans", table("ok,a,y", lambda i: ("true", "false")[i % 2], number, price), [], ["numbers: ok, a\n"]),
    ("no values", table("a,e,y", number, lambda i: "", price), [], ["left out: e (no values)"]),
    (
        "odd names",
        table('"cost ($)","p:q;r=[1]",it\'s,y', number, price, lambda i: i % 7, price),
        [],
        ["cost ($), p:q;r=[1], it's"],
    ),
    ("no y in some rows", table("a,y", number, lambda i: "" if i % 10 == 0 else price(i)), [], ["left out: 20"]),
    (
        "classes of numbers",
        table("a,y", number, lambda i: "NA" if i % 10 == 0 else i % 2),
        [],
        ["2 classes (0, 1)", "left out: 20"],
    ),
    ("numbers of classes", table("a,y", number, lambda i: i % 5), ["--task", "regression"], ["regression of 'y'\n"]),
    (
        "texts as categories",
        table("t,a,y", lambda i: f"T{i % 150}", number, price),
        ["--column", "t=category"],
        ["categories: t ("],
    ),
    (
        "numbers as categories",
        table("zip,a,y", lambda i: f"0{i % 4}", number, price),
        ["--column", "zip=category"],
        ["zip (4)"],
    ),
    (
        "no header",
        table("", number, lambda i: "uv"[i % 2]),
        ["--target", "2"],
        ["classification of '2', 2 classes (u, v)"],
    ),
    (
        "a colour",
        table("c,a,y", lambda i: "#ff0" if i % 9 else "red", number, price),
        [],
        ["1 categories of 'c' begin with #"],
    ),
]


@pytest.mark.parametrize(("text", "options", "said"), [case[1:] for case in TAKEN], ids=[case[0] for case in TAKEN])
@pytest.mark.sampled
def test_tables_that_are_taken(cntkpy, tmp_path: Path, text: str, options, said: list[str]) -> None:
    """The message says what was done with each column, and the data fit the configuration."""
    target = [] if "--target" in options else ["--target", "y"]
    got = cntkpy("new", "config", "d.csv", *target, *options, files={"d.csv": text})
    assert got.code == 0, got.err
    assert all(part in got.out for part in said), got.out
    checked = cntkpy("check", "--strict", "--data", "d.cntk")
    assert checked.code == 0, checked.out + checked.err


def test_leading_zeros_of_categories_are_kept(cntkpy, tmp_path: Path) -> None:
    text = table("zip,y", lambda i: f"0{i % 4}", price)
    assert (
        cntkpy("new", "config", "d.csv", "--target", "y", "--column", "zip=category", files={"d.csv": text}).code == 0
    )
    listed = (tmp_path / "d.classes/category_zip.txt").read_text().split("\n")
    assert listed == ["00", "01", "02", "03", "<missing>", "<other>", ""]


def test_thousands_of_categories(cntkpy, tmp_path: Path) -> None:
    """The most frequent ones of the training part are listed."""
    text = table(
        "sku,a,y", lambda i: "common" if i % 3 else f"s{i % 4000}", lambda i: i % 7, lambda i: i * 1.5, rows=9000
    )
    got = cntkpy("new", "config", "d.csv", "--target", "y", files={"d.csv": text})
    assert "the 1,000 most frequent ones have weights, the others are <other>" in got.out
    listed = (tmp_path / "d.classes/category_sku.txt").read_text().split()
    assert len(listed) == 1002 and "common" in listed and listed[-2:] == ["<missing>", "<other>"]
    assert cntkpy("check", "--data", "d.cntk").code == 0


def test_statistics_are_those_of_the_training_part(cntkpy, tmp_path: Path) -> None:
    """Means in place of missing numbers; categories and the scale of the target, too."""
    drawn = draw(np.arange(200), 1)
    text = table("a,c,y", lambda i: 1 if drawn[i] < 0.8 else 100, lambda i: "old" if drawn[i] < 0.8 else "new", price)
    text = text.replace("\n1,old,", "\n,old,", 3)
    assert cntkpy("new", "config", "d.csv", "--target", "y", files={"d.csv": text}).code == 0
    config = (tmp_path / "d.cntk").read_text()
    assert 'columns = ("a") ; missing = (1)' in config
    assert (tmp_path / "d.classes/category_c.txt").read_text().split() == ["old", "<missing>", "<other>"]
    y = np.array([price(i) for i in range(200)])[drawn < 0.8]
    mean, deviation = re.findall(r"prediction = z \* Constant \((\S+)\) \+ Constant \((\S+)\)", config)[0][::-1]
    assert (float(mean), float(deviation)) == pytest.approx((y.mean(), y.std()), rel=1e-6)


def test_nothing_is_overwritten(cntkpy, tmp_path: Path) -> None:
    text = table("a,c,y", number, lambda i: "uv"[i % 2], price)
    assert cntkpy("new", "config", "d.csv", "--target", "y", files={"d.csv": text, "models/d.model": "old"}).code == 0
    config = (tmp_path / "d.cntk").read_text()
    again = cntkpy("new", "config", "d.csv", "--target", "y")
    assert again.code == 2 and "there is a d.cntk already" in again.err and "--output NAME.cntk" in again.err
    elsewhere = cntkpy("new", "config", "d.csv", "--target", "y", "--output", "sub/e.cntk")
    assert elsewhere.code == 0, elsewhere.err
    assert (tmp_path / "sub/e.classes/category_c.txt").exists() and (tmp_path / "d.cntk").read_text() == config
    assert cntkpy("check", "--data", "sub/e.cntk").code == 0


def test_a_model_of_before_is_named(cntkpy, tmp_path: Path) -> None:
    """A run would go on from it, and it may have other columns."""
    files = {"d.csv": table("a,y", number, price), "models/d.model": "old"}
    assert "note: models/d.model is there" in cntkpy("new", "config", "d.csv", "--target", "y", files=files).out


@pytest.mark.parametrize("kind", ["parquet", "arrow", "feather"])
@pytest.mark.sampled
def test_files_with_types(cntkpy, tmp_path: Path, kind: str) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    rows = range(200)
    columns = {
        "x": pa.array([X[i] if i % 9 else None for i in rows], pa.float32()),
        "cat": pa.array(["uv"[i % 2] if i % 5 else None for i in rows]).dictionary_encode(),
        "flag": pa.array([i % 2 == 0 if i % 7 else None for i in rows]),
        "when": pa.array(list(rows), pa.timestamp("us")),
        "level": pa.array([i % 3 + 1 for i in rows], pa.int8()),
        "y": pa.array([price(i) for i in rows]),
    }
    write = pyarrow.parquet.write_table if kind == "parquet" else pyarrow.feather.write_feather
    write(pa.table(columns), str(tmp_path / f"d.{kind}"))
    got = cntkpy("new", "config", f"d.{kind}", "--target", "y")
    assert got.code == 0, got.err
    assert "numbers: x, flag, level" in got.out and "categories: cat (2)" in got.out and "left out: when" in got.out
    assert cntkpy("check", "--strict", "--data", "d.cntk").code == 0
    for target, classes in (
        ("level", "4 classes (0, 1, 2, 3)"),
        ("flag", "(false, true)"),
        ("cat", "2 classes (u, v)"),
    ):
        got = cntkpy("new", "config", f"d.{kind}", "--target", target, "--output", f"{target}.cntk")
        assert classes in got.out, got.err
        assert cntkpy("check", "--strict", "--data", f"{target}.cntk").code == 0
    write(pa.table({**columns, "list": [[1.0]] * 200}), str(tmp_path / f"d.{kind}"))
    got = cntkpy("new", "config", f"d.{kind}", "--target", "y", "--output", "z.cntk")
    assert got.code == 1 and "--drop list" in got.err


def test_other_formats(cntkpy) -> None:
    got = cntkpy("new", "config", "d.xlsx", "--target", "y", files={"d.xlsx": "PK"})
    assert got.code == 1 and "a spreadsheet" in got.err and "read_excel" in got.err
    got = cntkpy("new", "config", "d.txt", "--target", "y", files={"d.txt": "|x 1\n"})
    assert got.code == 1 and "'d.txt' is not a table" in got.err
    got = cntkpy("new", "config", "d.csv")
    assert got.code == 2 and "add --target COLUMN" in got.err
    got = cntkpy("new", "reader", "words", "--target", "y")
    assert got.code == 2 and "are not of `new reader`" in got.err


def test_a_url_with_a_query(cntkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages mask queries; the configuration has the address as it was given."""
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    content = table("a,c,y", number, lambda i: "uv"[i % 2], lambda i: i % 3).encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(b"")

        def do_GET(self) -> None:
            self.answer(content)

        def answer(self, body: bytes) -> None:
            known = self.path == "/d.csv?token=secret"
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(content) if known else 0))
            self.end_headers()
            self.wfile.write(body if known else b"")

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/d.csv?token=secret"
        got = cntkpy("new", "config", url, "--target", "y")
        assert got.code == 0, got.err
        assert "secret" not in got.out + got.err
        assert f'rows = "{url}"' in (tmp_path / "d.cntk").read_text()
        checked = cntkpy("check", "--data", "d.cntk")
        assert checked.code == 0, checked.out + checked.err
    finally:
        server.shutdown()
        server.server_close()


def test_categories_that_are_called_as_ours(cntkpy, tmp_path: Path) -> None:
    text = table("c,y", lambda i: ("<missing>", "u", "<other>")[i % 3], price)
    assert cntkpy("new", "config", "d.csv", "--target", "y", files={"d.csv": text}).code == 0
    assert (tmp_path / "d.classes/category_c.txt").read_text().split() == ["u", "<missing>", "<other>"]
    assert cntkpy("check", "--strict", "--data", "d.cntk").code == 0


def test_every_part_has_rows(cntkpy, tmp_path: Path) -> None:
    """Another seed is taken where the first one leaves no row for validation."""
    rows = np.arange(60)
    drawn = draw(rows, 1)
    known = (drawn < 0.8) | (drawn >= 0.9)
    text = table("a,y", number, lambda i: price(i) if known[i] else "", rows=60)
    got = cntkpy("new", "config", "d.csv", "--target", "y", files={"d.csv": text})
    seed = int(re.findall(r"by random\((\d+)\)", got.out)[0])
    assert seed > 1
    for other in range(1, seed + 1):
        counts = np.histogram(draw(rows, other)[known], [0, 0.8, 0.9, 1])[0]
        assert (counts > 0).all() == (other == seed)
    assert f"random({seed}) < 0.8" in (tmp_path / "d.cntk").read_text()
    assert cntkpy("check", "--strict", "--data", "d.cntk").code == 0
