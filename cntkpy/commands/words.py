"""The words of `check` and `show`: which configurations they name, and what else is said."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click

AGAIN = "--again"
"""The word that makes every training of a run start over; it is an option, since a command may have any name."""
RECORD = "--record"
"""The word by which `cntkpy run` asks for the record of a training, `--record=NAME` where a project names the run; the
classic command line has `record=true`."""
TRACK = "--track"
"""The option that sends what happens to a tracker: `--track mlflow:URI`; as one word in the words of a run."""
RESOLVED = "config.resolved.cntk"
"""The file with the configuration of a run, in the folder of its record or of a trial of a sweep."""
ALLOW_REMOTE = "--allow-remote"
"""The option of all commands that read configurations; it stands for the word allowRemote=true."""
OPEN = ("UnknownVariable", "VariableCycle")
"""Kinds of errors that say that a variable is not given, which `--open` allows."""


class Words(NamedTuple):
    """The words of a tool, sorted: command lines of the classic form, and the rest."""

    configurations: list[list[str]]
    """One classic command line for each configuration."""
    rest: list[str]
    """Words that are neither configurations nor overrides."""


def is_config_word(word: str) -> bool:
    """Return whether a word names configuration files in the classic form."""
    return word.lower().startswith("configfile=")


def is_override(word: str) -> bool:
    """Return True if a word sets a parameter or names `configFile=`; the query of a URL does not."""
    if "=" not in word or "://" not in word:
        return "=" in word
    from cntkpy.cntk_config.base.names import is_url  # late: the command line starts without the language

    return not is_url(word)


def sort_words(words: list[str], files: int | None = None) -> Words:
    """Sort the words: `configFile=` words make one classic command line; else every file is a configuration.

    Args:
        words: files, `name=value`, `configFile=...`
        files: how many plain words are files; what follows is the rest. None: all of them.
    """
    plain = [word for word in words if not is_override(word)]
    named = [word for word in words if is_config_word(word)]
    if named and not any(word.partition("=")[2].strip(" \t+") for word in named):
        raise click.UsageError("configFile= names no file. Write configFile=FILE, or the name of the file alone.")
    if named:
        line = [word for word in words if files is None or is_override(word)]
        return Words([line], [] if files is None else plain)
    overrides = [word for word in words if is_override(word)]
    chosen = plain if files is None else plain[:files]
    if not chosen:
        raise click.UsageError("No configuration is given. Name a file, or use configFile=FILE.")
    directories = [word for word in overrides if word.lower().startswith("currentdirectory=")]
    other_words = [word for word in overrides if word not in directories]
    lines = [
        [*directories, *(run_words(name) or [f"configFile={name}"]), *other_words]  # files are read from these folders
        for name in chosen
    ]
    return Words(lines, plain[len(chosen) :])


def run_words(name: str) -> list[str] | None:
    """Return the command line of a run of the project of the current folder; None if no run is called so.

    Args:
        name: The word; a file of that name is meant before a run.

    Raises:
        ConfigError: The project file has an error.
    """
    from cntkpy.cntk_config.base.files import exists

    if "+" in name or exists(name):
        return None
    from cntkpy.cntk_config.base.diagnostics import ConfigError, nearest
    from cntkpy.commands.projects.places import find_project

    project = find_project(Path())
    run = project.run(name) if project is not None else None
    if project is not None and run is None:
        meant = nearest(name, [run.name for run in project.runs])
        if meant is not None:
            message = f"there is no file '{name}', and no run of that name in {project.text.source.name}"
            raise ConfigError("FileNotFound", message, hint=f"did you mean '{meant}'?")
    return run.command_line() if run is not None else None


def as_classic(words: list[str]) -> list[str]:
    """Return the words of `run` in the classic form: the first plain word is the configuration, as for `check` and
    `show`.

    Words with `configFile=` stay as they are; so does a program in Python. A further plain word that is no file sets a
    parameter to true.

    Raises:
        click.UsageError: there is a second file.
    """
    from cntkpy.cntk_config.base.files import is_file

    plain = [word for word in words if not is_override(word) and not word.startswith("-")]
    if not plain or any(map(is_config_word, words)) or plain[0].endswith(".py"):
        return words
    for word in plain[1:]:
        if is_file(word) or word.endswith((".cntk", ".cfg", ".config")):
            joined = "+".join([plain[0], word])
            raise click.UsageError(f"A run has one configuration; files that are read in turn are joined: {joined}")
    options = [word for word in words if word.startswith("-")]
    names = [word for word in words if not word.startswith("-")]
    (line,) = sort_words(names, files=1).configurations
    return [*options, *line, *plain[1:]]


def name_of_run(words: Sequence[str], classic: Sequence[str]) -> str:
    """Return the name that a project gives a run; empty: the words name files.

    Args:
        words: As they were given.
        classic: The same in the classic form.
    """
    plain = next((word for word in words if not is_override(word) and not word.startswith("-")), "")
    is_run = plain and not any(map(is_config_word, words)) and f"configFile={plain}" not in classic
    return plain if is_run else ""


@contextmanager
def same_directory() -> Generator[None]:
    """Come back to the current directory at the end, whatever `currentDirectory=` did."""
    here = Path.cwd()
    try:
        yield
    finally:
        os.chdir(here)
