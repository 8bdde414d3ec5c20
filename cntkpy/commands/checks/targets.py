"""Configurations that words of `check` mean: the runs of a project, or files by themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from cntkpy.cntk_config.base.files import exists, is_folder
from cntkpy.commands.checks.folders import expand_folders
from cntkpy.commands.projects.places import NAME, PYPROJECT, find_project, folders_of_projects
from cntkpy.commands.words import is_config_word, is_override, sort_words

if TYPE_CHECKING:
    from cntkpy.commands.projects.project import Project, Run


class Target(NamedTuple):
    """A configuration to check.

    Attributes:
        line: The words of the classic command line.
        run: The run of the project that the line is made of; None for files by themselves.
        project: The project whose findings are left out.
    """

    line: list[str]
    run: Run | None = None
    project: Project | None = None


class Targets:
    """Find the configurations of words, each once.

    Args:
        skipped: Gets the names of files of folders that are no configurations.
    """

    def __init__(self, skipped: list[str]) -> None:
        self._skipped = skipped
        self._projects: dict[Path, Project | None] = {}
        self.projects: dict[Path, Project] = {}
        """Projects that were found, by their files."""
        self.whole: list[Project] = []
        """Projects whose runs are all checked."""

    def of(self, words: list[str]) -> list[Target]:
        """Return the configurations that words mean.

        Args:
            words: Files, folders, names of runs, the project file, and overrides; none: the runs of the project.

        Raises:
            click.UsageError: There is no configuration.
            ConfigError: A project file cannot be read.
        """
        if any(map(is_config_word, words)):
            return [Target(line) for line in sort_words(words).configurations]
        overrides = [word for word in words if is_override(word)]
        plain = [word for word in words if not is_override(word)]
        if not plain:
            plain = [str(self._present().text.source.path)] if not overrides or self._project(Path()) else []
        result: list[Target] = []
        runs: set[tuple[Path, str]] = set()
        for word in plain:
            for target in self._of_word(word, overrides):
                if target.run is not None and target.project is not None:
                    key = target.project.folder, target.run.name
                    if key in runs:
                        continue
                    runs.add(key)
                result.append(target)
        if not result and any(project.problems or project.names_files for project in self.projects.values()):
            return []
        if not result:
            folders = " ".join(word for word in plain if is_folder(word))
            if not words and self.projects:
                message = (
                    f"In the project there is no configuration. Add [[run]] to {Path(plain[0]).name}, or name a file."
                )
                raise click.UsageError(message)
            if folders and all(map(is_folder, plain)):
                raise click.UsageError(f"In {folders} there is no configuration.")
            sort_words(words)  # says what is missing
        return result

    def _present(self) -> Project:
        project = self._project(Path())
        if project is None:
            message = f"No configuration is given, and there is no {NAME} here or above."
            nested = next(folders_of_projects(Path()), None)
            if nested is not None:
                raise click.UsageError(
                    f"{message} There is one in {nested}: write `cntkpy check {nested}`, or `cntkpy check .`"
                )
            raise click.UsageError(f"{message} Name a file, or make a project with `cntkpy new project NAME`.")
        return project

    def _project(self, folder: Path) -> Project | None:
        key = folder.resolve()
        if key not in self._projects:
            project = self._projects[key] = find_project(key)
            if project is not None and project.text.source.path is not None:
                self.projects.setdefault(project.text.source.path, project)
                project = self._projects[key] = self.projects[project.text.source.path]
        return self._projects[key]

    def _of_word(self, word: str, overrides: list[str]) -> Iterator[Target]:
        path = Path(word)
        if not exists(path) and "+" not in word:
            project = self._project(Path())
            run = next((run for run in project.runs if run.name == word), None) if project is not None else None
            if run is not None:
                if run.is_complete:
                    yield Target([*run.command_line(), *overrides], run, project)
                return
        if is_folder(path):
            yield from self._of_folder(path, overrides)
            return
        project = self._project(path.parent) if "+" not in word or exists(path) else self._project(Path())
        if project is not None and path.name in (NAME, PYPROJECT) and exists(path):
            yield from self._of_folder(Path(os.path.relpath(project.folder)), overrides)
            return
        runs = project.runs_of(path) if project is not None and exists(path) else []
        if runs:
            yield from self._all(project, runs, [], overrides)
        elif project is None or project.is_complete:
            yield from self._alone(word, overrides, project)

    def _of_folder(self, path: Path, overrides: list[str]) -> Iterator[Target]:
        project = self._project(path)
        if project is not None:
            inside = path.resolve()
            is_whole = inside == project.folder or inside in project.folder.parents
            runs = list(project.runs) if is_whole else project.runs_of(path)
            files = [file for file in project.included() if is_whole or inside in file.resolve().parents]
            if is_whole and project not in self.whole:
                self.whole.append(project)
            if runs or files or (is_whole and (project.names_files or project.problems)):
                yield from self._all(project, runs, files, overrides)
                return
        nested = list(folders_of_projects(path))
        for folder in nested:
            yield from self._of_folder(folder, overrides)
        skipped: list[str] = []
        for file in expand_folders([str(path)], skipped=skipped):
            is_wanted = project is None or (project.is_complete and not project.is_excluded(Path(file)))
            if is_wanted and not _is_below(file, nested):
                yield from self._alone(file, overrides, project)
        self._skipped += (file for file in skipped if not _is_below(file, nested))

    def _all(
        self, project: Project | None, runs: list[Run] | tuple[Run, ...], files: list[Path], overrides: list[str]
    ) -> Iterator[Target]:
        for run in runs:
            if run.is_complete:
                yield Target([*run.command_line(), *overrides], run, project)
        for file in files:
            if project is None or not project.runs_of(file):
                yield from self._alone(_from_here(file), overrides, project)

    def _alone(self, word: str, overrides: list[str], project: Project | None) -> Iterator[Target]:
        for line in sort_words([word, *overrides]).configurations:
            yield Target(line, None, project)


def _is_below(file: str, folders: list[Path]) -> bool:
    """Return True for a file in one of some folders or further down."""
    return any(folder in Path(file).parents for folder in folders)


def _from_here(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
