"""`cntkpy new`: what it makes passes its own test, is found once installed, and is used by a configuration."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cntkpy.commands.new.package import KINDS, TEMPLATES, class_name

ROOT = Path(__file__).resolve().parents[3]


def process(folder: Path, *words: str, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Python in a folder; of a package that is installed in `site`."""
    path = os.pathsep.join([*([str(site)] if site else []), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def own_tests(folder: Path, site: Path | None = None) -> str:
    """The last line of the tests of a package, which have to pass."""
    done = process(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", site=site)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_there_is_a_template_of_every_kind() -> None:
    assert {path.name for path in TEMPLATES.iterdir()} == {*KINDS, "project"}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [pytest.param("reader"), pytest.param("tracker", marks=pytest.mark.thorough)])
def test_its_own_test_passes(kind: str, cntkpy, tmp_path: Path) -> None:
    got = cntkpy("new", kind, "our-things")
    assert got.code == 0
    assert got.out.startswith(f"our-things: a package with the {kind} OurThings{kind.capitalize()}\n  cd our-things\n")
    folder = tmp_path / "our-things"
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.*") if path.is_file()}
    assert {"README.md", "pyproject.toml", "__init__.py", "test_our_things.py"} <= {path.name for path in texts}
    for path, text in texts.items():
        left = [word for word in ("PACKAGE", "CLASS", "NAME") if word in text]
        assert not left, f"{left} in {path}"
    project = tomllib.loads(texts[folder / "pyproject.toml"])
    cls = f"OurThings{kind.capitalize()}"
    assert project["project"]["entry-points"] == {f"cntkpy.{kind}s": {cls: f"our_things:{cls}"}}
    assert project["project"]["dependencies"] == [{"reader": "cntkpy[data]", "tracker": "cntkpy"}[kind]]
    assert "passed, 1 skipped" in own_tests(folder)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("reader", "Word Counts", "write word-counts"),
        ("reader", "wordCounts", "write word-counts"),
        ("reader", "../x", "write x"),
        ("reader", "9", "write a name such as word-counts"),
        ("reader", "", "write a name such as word-counts"),
        ("reader", "a" * 61, "it has 61 characters, and 60 are enough"),
        ("reader", "json", "Python has a module or a word of that name"),
        ("reader", "class", "write my-class"),
        ("tracker", "tests", "cntkpy has a package of that name"),
        ("reader", "numpy", "a package of that name is installed"),
        ("reader", "uci-fast", "cntkpy has a UciFastReader"),
    ],
)
def test_names_that_no_package_can_have(kind: str, name: str, said: str, cntkpy, tmp_path: Path) -> None:
    got = cntkpy("new", kind, name)
    assert got.code == 2 and said in got.err
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "lines").symlink_to("nowhere")
    for name in ("words", "lines"):
        got = cntkpy("new", "reader", name)
        assert (got.code, got.err) == (
            2,
            f"error: there is a {name} already\n  help: choose another name, or move it away\n",
        )
    assert not list((tmp_path / "words").iterdir())


def test_half_a_package_is_not_left(cntkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cntkpy.commands.new.package.atomic_write", full)
    got = cntkpy("new", "reader", "words")
    assert got.code == 2 and "words cannot be written: No space left on device" in got.err
    assert not list(tmp_path.iterdir())


def test_names_of_classes() -> None:
    names = ("word_counts", "word_counts_reader", "reader", "a1_b")
    assert [class_name(name, "Reader") for name in names] == [
        "WordCountsReader",
        "WordCountsReader",
        "Reader",
        "A1BReader",
    ]


def installed(folder: Path) -> Path:
    """A folder into which pip has installed a package, without a network."""
    site = folder.parent / "site"
    command = ["-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    done = process(folder, *command, "--disable-pip-version-check", "--target", str(site), ".")
    assert done.returncode == 0, done.stderr
    return site


@pytest.mark.thorough
def test_an_installed_reader(cntkpy, tmp_path: Path) -> None:
    cntkpy("new", "reader", "word-counts")
    folder = tmp_path / "word-counts"
    site = installed(folder)
    assert "7 passed" in own_tests(folder, site)
    checked = process(folder, "-m", "cntkpy", "check", "example.cntk", site=site)
    assert checked.returncode == 0 and "no problems" in checked.stdout, checked.stdout
    wrong = process(folder, "-m", "cntkpy", "check", "example.cntk", "train/reader/dmi=2", site=site)
    assert wrong.returncode == 2 and "did you mean 'dim'?" in wrong.stdout + wrong.stderr
    done = process(folder, "-m", "cntkpy", "run", "example.cntk", site=site)
    assert done.returncode == 0 and done.stderr.endswith("COMPLETED.\n"), done.stderr
    assert (folder / "model").is_file()
    listed = process(folder, "-m", "cntkpy", "list", "readers", site=site)
    assert "WordCountsReader" in listed.stdout


@pytest.mark.thorough
def test_an_installed_tracker(cntkpy, tmp_path: Path) -> None:
    """The reader of the other template gives the run that it follows."""
    cntkpy("new", "tracker", "line-file")
    cntkpy("new", "reader", "word-counts")
    site = installed(tmp_path / "line-file")
    assert "2 passed" in own_tests(tmp_path / "line-file", site)
    words = ("run", "--track", "LineFileTracker:lines.txt", "example.cntk", "train/reader/module=word_counts")
    done = process(tmp_path / "word-counts", "-m", "cntkpy", *words, site=site)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "word-counts/lines.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("started with") and lines[-1] == "finished with status 0"
    assert any(line.startswith("10: train/CrossEntropyWithSoftmax = ") for line in lines)
