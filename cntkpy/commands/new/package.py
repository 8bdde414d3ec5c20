"""A folder with a Python package, made of the template of a kind.

A template is a folder of texts in which PACKAGE, CLASS and NAME stand for the names; the ending `.in` keeps tools from
taking them for programs.
"""

from __future__ import annotations

import importlib.util
import keyword
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.writing import atomic_write, shown, why_no_folder

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".in"
STANDS_FOR = re.compile("PACKAGE|CLASS|NAME")
NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
"""A name of a package index that stays one when it becomes the name of a module."""
LONGEST = 60
"""Characters of a name: its folder has files with longer names."""
OURS = ("cntk", "cntkpy", "tests")


def _readers() -> Iterable[str]:
    from cntkpy.readers.entries import READER, names

    return names(READER)


def _trackers() -> Iterable[str]:
    from cntkpy.commands.tracking.tracker import BUILT_IN

    return BUILT_IN


@dataclass(frozen=True)
class Kind:
    """Kind of a package: the ending of its classes, the names that are taken, and what comes after `make`."""

    ending: str
    taken: Callable[[], Iterable[str]]
    use: str


KINDS = {
    "reader": Kind("Reader", _readers, "cntkpy run example.cntk"),
    "tracker": Kind("Tracker", _trackers, "cntkpy run --track CLASS:TARGET CONFIG"),
}


def make(kind: str, name: str) -> int:
    """Make the folder `name` in the current folder and say what to do with it.

    Raises:
        ConfigError: there is something of that name, it cannot be one, or the folder cannot be written.
    """
    chosen = KINDS[kind]
    package = name.replace("-", "_")
    cls = class_name(package, chosen.ending)
    _check(name, package, cls, chosen)
    words = {"PACKAGE": package, "CLASS": cls, "NAME": name}
    write_template(kind, name, words, {})
    print(f"{name}: a package with the {kind} {cls}")
    for line in (f"cd {name}", "pip install -e .", "pytest", filled(chosen.use, words)):
        print(f"  {line}")
    return 0


def class_name(package: str, ending: str) -> str:
    """Return the name of the class: `word_counts` is WordCountsReader, as is `word_counts_reader`."""
    parts = package.split("_")
    if parts[-1] == ending.lower():
        parts.pop()
    return "".join(part.capitalize() for part in parts) + ending


def filled(text: str, words: dict[str, str]) -> str:
    """Return a text of a template with the names in it."""
    return STANDS_FOR.sub(lambda result: words[result[0]], text)


def _check(name: str, package: str, cls: str, kind: Kind) -> None:
    """See that a package can have a name.

    Raises:
        ConfigError: it cannot.
    """
    why, hint = "", ""
    if not NAME.fullmatch(name):
        why = "it is not made of small letters, digits and single dashes, with a letter first"
        hint = _nearest(name)
    elif len(name) > LONGEST:
        why, hint = f"it has {len(name)} characters, and {LONGEST} are enough", "choose a shorter one"
    elif keyword.iskeyword(package) or package in sys.stdlib_module_names:
        why, hint = "Python has a module or a word of that name", f"write my-{name}"
    elif package in OURS:
        why, hint = "cntkpy has a package of that name", f"write my-{name}"
    elif importlib.util.find_spec(package) is not None:
        why, hint = "a package of that name is installed", f"write my-{name}"
    elif cls.lower() in (taken_name.lower() for taken_name in kind.taken()):
        why, hint = f"cntkpy has a {cls}", f"write my-{name}"
    if why:
        raise ConfigError("BadChoice", f"a package cannot be called '{shown(name)}': {why}", None, hint)


def _nearest(name: str) -> str:
    """Return a hint with the nearest valid name."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name)
    tidy = re.sub(r"[^a-z0-9]+", "-", spaced.lower()).strip("-")
    return f"write {tidy}" if NAME.fullmatch(tidy) else "write a name such as word-counts"


def write_template(kind: str, name: str, words: dict[str, str], contents: Mapping[str, str]) -> None:
    """Make a folder of the files of a template, all or none.

    Args:
        kind: the template.
        name: of the folder.
        words: by placeholder what it stands for, in texts and in names of files.
        contents: by name the texts of further files.

    Raises:
        ConfigError: the folder is there already, or cannot be written.
    """
    folder, template = Path(name), TEMPLATES / kind
    if folder.exists() or folder.is_symlink():
        raise ConfigError("CannotWrite", f"there is a {name} already", None, "choose another name, or move it away")
    texts = {
        filled(source.relative_to(template).as_posix(), words).removesuffix(SUFFIX): filled(
            read_input(source).decode(), words
        )
        for source in sorted(template.rglob(f"*{SUFFIX}"))
    }
    try:
        folder.mkdir()
        for place, text in {**texts, **contents}.items():
            with atomic_write(folder / place, "w", durable=False) as file:
                file.write(text)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        message = f"{shown(folder)} cannot be written: {why_no_folder(folder) or error.strerror or error}"
        raise ConfigError("CannotWrite", message) from None
