"""A project: its file, its runs with their layers, and the findings that it leaves out."""

from __future__ import annotations

import fnmatch
import functools
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, Span, printable
from cntkpy.cntk_config.base.files import exists, is_file, is_folder, read_input
from cntkpy.cntk_config.base.kinds import RULES
from cntkpy.cntk_config.base.spelling import nearest_file
from cntkpy.commands.projects.contracts import Contract, contracts_of
from cntkpy.commands.projects.schema import problems
from cntkpy.commands.projects.toml_text import Path_, TomlText

MAX_RUNS = 10_000
"""Runs of one project: a matrix grows by multiplication."""
MAX_MATCHES = 10_000
"""Files that a glob may name."""
MIN_SIMILARITY = 0.6
"""Similarity of names of files and folders, 0 to 1, from which one is meant by the other."""
MAX_DEEP = 2
"""Times that a glob may have `**`: the time to match grows with its power."""
NETWORKS = (".bs", ".ndl", ".mel")
"""Endings of files of other languages, which configurations name in several ways."""
MAX_INCLUDED = 1000
"""Files of a run, with those that are included, that are looked through."""
_INCLUDE = re.compile(r"""(?im)^[ \t]*+include[ \t]*+=?[ \t]*+["']?([^"'#;\n]++)""")
_GLOB = re.compile(r"[*?\[]")
_ENVIRONMENT = re.compile(r"\$\{env:([^}]*)\}")


class Run(NamedTuple):
    """One run of a project: the files that are read in turn, and the words after them.

    Attributes:
        name: Its name, unique in the project.
        files: The layers, absolute, in their order.
        words: The words after the files, each with its place in the project file.
        folder: The working directory, absolute.
        span: The place of its name.
        files_span: The place of its list of files.
        is_complete: False if its table has an error, so that layers, words or variables may be missing.
    """

    name: str
    files: tuple[Path, ...]
    words: tuple[tuple[str, Span], ...]
    folder: Path
    span: Span
    files_span: Span
    is_complete: bool = True

    def command_line(self, *, absolute: bool = False) -> list[str]:
        """Return the words of the classic command line, with names relative to the current directory.

        Args:
            absolute: Name files by their whole paths.
        """
        names = [str(path) if absolute else os.path.relpath(path) for path in self.files]
        joined = [f"configFile={name}" for name in names] if any("+" in name for name in names) else []
        line = joined or [f"configFile={'+'.join(names)}"]
        if self.folder != Path.cwd():
            line.append(f"currentDirectory={self.folder if absolute else os.path.relpath(self.folder)}")
        return [*line, *(word for word, _ in self.words)]

    def place(self, argument: int, line: Sequence[str]) -> Span | None:
        """Return the place in the project file of a word of the run.

        Args:
            argument: The number of the word in the command line, from 1.
            line: The command line.
        """
        number = argument - 1 - (len(line) - len(self.words))
        return self.words[number][1] if 0 <= number < len(self.words) else None


@dataclass(frozen=True)
class Project:
    """A project file that has been read.

    Attributes:
        text: The file, with places.
        folder: Its folder, absolute.
        runs: The runs in the order of the file, those of a matrix in the order of its lists.
        contracts: The contracts of values.
        problems: Errors of the file; what has none can be used.
    """

    text: TomlText
    folder: Path
    runs: tuple[Run, ...] = ()
    contracts: tuple[Contract, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    strict: bool = False
    modules: tuple[str, ...] | None = None
    """Modules of readers that runs may import; None: any."""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    globs: tuple[tuple[str, Span], ...] = ()
    """Globs of `include`, `exclude` and `per-file`, with their places."""

    @property
    def names_files(self) -> bool:
        """True if the file says what is checked; otherwise it is what lies in the folder."""
        return bool(self.runs or self.include)

    @property
    def is_complete(self) -> bool:
        """False if the table of a run has an error: any file may be a layer that its list fails to name."""
        return all(run.is_complete for run in self.runs)

    def run(self, name: str) -> Run | None:
        """Return the run of a name.

        Raises:
            ConfigError: The project file has an error, so that its runs may not be those that are meant.
        """
        run = next((run for run in self.runs if run.name == name), None)
        if run is not None:
            self.require()
        return run

    def unmatched(self) -> Iterator[Diagnostic]:
        """Yield globs of `include`, `exclude` and `per-file` that match no file, each at its place."""
        for glob, span in self.globs:
            if glob.count("**") <= MAX_DEEP and not _glob(self.folder, glob, 1):
                hint = _nearest_glob(self.folder, glob) or "correct the glob, or remove it"
                message = f"no file matches '{printable(glob)}'"
                yield Diagnostic("UnmatchedGlob", message, span, hint, severity="warning")

    def require(self) -> None:
        """Raise the first error of the file, if there is one.

        Raises:
            ConfigError: There is an error.
        """
        if self.problems:
            first = self.problems[0]
            notes = [f"{len(self.problems)} errors in all; `cntkpy check` shows them"] * (len(self.problems) > 1)
            raise ConfigError(first.kind, first.message, first.span, first.hint, notes)

    def runs_of(self, path: Path) -> list[Run]:
        """Return the runs that a file is a layer of, or that have a layer in a folder.

        A file that layers include is part of their runs; so is one of another language, as a network, whose name stands
        in a layer.
        """
        absolute = path.resolve()
        if is_folder(path):
            return [run for run in self.runs if any(absolute in file.resolve().parents for file in run.files)]
        runs = [run for run in self.runs if absolute in _resolved(run.files)]
        if runs or absolute == self.text.source.path:
            return runs
        texts: dict[Path, str] = {}
        return [run for run in self.runs if _has_part(run, absolute, texts)]

    def is_excluded(self, path: Path) -> bool:
        """Return True if `exclude` names a file."""
        return self._matches(path, self.exclude)

    def included(self) -> list[Path]:
        """Return the files that are checked by themselves."""
        files = dict.fromkeys(
            path for glob in self.include if glob.count("**") <= MAX_DEEP for path in _glob(self.folder, glob)
        )
        return [path for path in files if not self.is_excluded(path)]

    def is_ignored(self, span: Span | None, code: str) -> bool:
        """Return True if the project leaves out a finding.

        Args:
            span: The place of the finding.
            code: The code of the finding.
        """
        codes = [*self.ignore]
        path = getattr(span.source, "path", None) if span is not None else None
        if isinstance(path, Path):
            codes += (
                c for pattern, several in self.per_file.items() if self._matches(path, [pattern]) for c in several
            )
        return any(code.startswith(word.strip().upper()) for word in codes if word.strip())

    def _matches(self, path: Path, patterns: Sequence[str]) -> bool:
        try:
            name = path.resolve().relative_to(self.folder).as_posix()
        except ValueError:
            return False
        return any(_pattern(glob).fullmatch(name) for glob in patterns if glob.count("**") <= MAX_DEEP)


@functools.lru_cache(256)
def _pattern(glob: str) -> re.Pattern[str]:
    """Return the pattern of a glob: `*` matches within a folder, `**` in all folders below."""
    parts = (
        "(?:.*/)?" if part == "**/" else ".*" if part == "**" else fnmatch.translate(part)[4:-3].replace(".*", "[^/]*")
        for part in re.split(r"(\*\*/|\*\*)", glob)
        if part
    )
    return re.compile("".join(parts), re.DOTALL)


def _has_part(run: Run, part: Path, texts: dict[Path, str]) -> bool:
    """Return True if the layers of a run include a file, or if they name one of another language.

    Args:
        run: The run.
        part: The file, resolved.
        texts: Texts of files that have been read; gets those that are read.
    """
    word = re.compile(rf"(?<![\w.-]){re.escape(part.name)}(?![\w-])") if part.suffix in NETWORKS else None
    pending, seen = list(run.files), set[Path]()
    while pending and len(seen) < MAX_INCLUDED:
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        if path not in texts:
            try:
                texts[path] = read_input(path).decode("utf-8", "replace")
            except OSError:
                texts[path] = ""
        if path.resolve() == part or (word is not None and word.search(texts[path])):
            return True
        for match in _INCLUDE.finditer(texts[path]):
            folders = (run.folder, path.parent)
            pending += [file for folder in folders if is_file(file := folder / match[1].strip())][:1]
    return False


@functools.lru_cache(4096)
def _resolved(files: tuple[Path, ...]) -> frozenset[Path]:
    return frozenset(file.resolve() for file in files)


def load_project(path: Path, prefix: Path_ = (), text: str | None = None, name: str | None = None) -> Project:
    """Read a project file.

    Args:
        path: The file, absolute.
        prefix: The keys of the table that holds the project.
        text: The text of the file; None reads it.
        name: The name of the file in messages; None: relative to the current folder.

    Raises:
        ConfigError: The file cannot be read, or is not TOML.
        KeyError: It has no table of that prefix.
    """
    toml = TomlText(path, name or os.path.relpath(path), text)
    table: Any = toml.data
    for key in prefix:
        table = table[key]
    if not isinstance(table, dict):
        raise ConfigError("BadProject", "the project is a table", toml.value(*prefix), "write [tool.cntkpy]")
    return _Builder(toml, path.parent.resolve(), prefix, cast("dict[str, Any]", table)).project()


class _Builder:
    """Makes a project of a table, and collects errors."""

    def __init__(self, text: TomlText, folder: Path, prefix: Path_, table: dict[str, Any]) -> None:
        self._text, self._folder, self._prefix, self._table = text, folder, prefix, table
        self._errors = list(problems(text, table, prefix))
        self._wrong = {(error.span.line, error.span.column) for error in self._errors if error.span is not None}

    def project(self) -> Project:
        """Return the project; what is wrong in the file is left out of it."""
        runs = tuple(self._runs())
        for codes, place in self._codes():
            if not any(rule.code.startswith(codes.strip().upper()) for rule in RULES) or not codes.strip():
                self._add(f"no finding has the code '{codes}'", place, "`cntkpy list findings` shows all")
        for glob, place in self._globs():
            if glob.count("**") > MAX_DEEP:
                self._add(f"a glob has more than {MAX_DEEP} times **", place, "write one ** for all folders below")
        per_file = cast("dict[str, list[str]]", self._get("per-file", {}))
        return Project(
            self._text,
            self._folder,
            runs,
            contracts_of(self._text, self._get("types", {}), (*self._prefix, "types")),
            tuple(self._get("ignore", ())),
            {pattern: tuple(codes) for pattern, codes in per_file.items()},
            bool(self._get("strict", False)),
            tuple(modules) if (modules := self._get("modules", None)) is not None else None,
            tuple(self._get("include", ())),
            tuple(self._get("exclude", ())),
            tuple(self._errors),
            tuple(self._globs()),
        )

    def _globs(self) -> Iterator[tuple[str, Span]]:
        for key in ("include", "exclude"):
            for index, glob in enumerate(self._get(key, ())):
                yield glob, self._text.value(*self._prefix, key, index)
        for glob in self._get("per-file", {}):
            yield glob, self._text.key(*self._prefix, "per-file", glob)

    def _codes(self) -> Iterator[tuple[str, Span]]:
        for index, codes in enumerate(self._get("ignore", ())):
            yield codes, self._text.value(*self._prefix, "ignore", index)
        for pattern, several in self._get("per-file", {}).items():
            for index, codes in enumerate(several):
                yield codes, self._text.value(*self._prefix, "per-file", pattern, index)

    def _get(self, name: str, default: Any, path: Path_ = (), table: Mapping[str, Any] | None = None) -> Any:
        """Return the value of a key; the default if it is missing or wrong."""
        holder = self._table if table is None else table
        span = self._text.value(*(path or self._prefix), name)
        return holder[name] if name in holder and (span.line, span.column) not in self._wrong else default

    def _add(self, message: str, span: Span, hint: str | None = None) -> None:
        self._errors.append(Diagnostic("BadProject", message, span, hint))

    def _runs(self) -> Iterator[Run]:
        names: dict[str, Span] = {}
        total = 0
        tables = cast("list[Any]", self._get("run", []))
        for index, table in enumerate(tables):
            if not isinstance(table, dict):
                continue
            for run in self._expanded(cast("dict[str, Any]", table), (*self._prefix, "run", index)):
                total += 1
                if total > MAX_RUNS:
                    self._add(f"there are more than {MAX_RUNS:,} runs", run.span, "make the lists of `each` shorter")
                    return
                if not run.is_complete:
                    yield run
                    continue
                if run.name in names:
                    hint = "give each run a name of its own"
                    self._add(f"there are two runs '{run.name}', the other one at {names[run.name]}", run.span, hint)
                    continue
                names[run.name] = run.span
                yield run

    def _expanded(self, table: Mapping[str, Any], path: Path_) -> Iterator[Run]:
        """Yield the runs of a table: one, or one for each combination of `each`."""
        header = self._text.key(*path)
        known_errors = len(self._errors)
        name: str = self._get("name", "", path, table)
        files, each = self._get("files", (), path, table), self._get("each", (), path, table)
        if not files and not each:
            if not table.get("files") and not table.get("each"):
                self._add("a run needs files", header, 'add files = ["base.cntk"]')
            return
        fixed = [file for index, text in enumerate(files) for file in self._files(text, (*path, "files", index))]
        axes: list[list[Path]] = []
        for index, element in enumerate(each):
            inner = (*path, "each", index)
            if isinstance(element, str):
                axes.append(self._files(element, inner))
            else:
                texts = enumerate(cast("list[str]", element))
                axes.append([file for number, text in texts for file in self._files(text, (*inner, number))])
        if not name and not table.get("each"):
            self._add("a run needs a name", header, 'add name = "train"')
            return
        folder = self._run_folder(table, path)
        words = tuple(self._words(table, path))
        span = self._text.value(*path, "name") if "name" in table else header
        files_span = self._text.value(*path, "files" if files else "each")
        if not fixed and not any(axes):
            return
        is_complete = len(self._errors) == known_errors and not self._is_wrong(table, path)
        for layers in itertools.product(*(axis for axis in axes if axis)):
            full = "-".join(filter(None, [name, *(layer.stem for layer in layers)]))
            yield Run(full, (*fixed, *layers), words, folder, span, files_span, is_complete)

    def _is_wrong(self, table: Mapping[str, Any], path: Path_) -> bool:
        """Return True if a key or a value of a table is wrong."""
        spans = (span for key in table for span in (self._text.key(*path, key), self._text.value(*path, key)))
        return any((span.line, span.column) in self._wrong for span in spans)

    def _run_folder(self, table: Mapping[str, Any], path: Path_) -> Path:
        name = self._get("folder", "", path, table)
        folder = (self._folder / name).resolve()
        if not is_folder(folder):
            self._add(f"there is no folder '{name}'", self._text.value(*path, "folder"))
            return self._folder
        return folder

    def _words(self, table: Mapping[str, Any], path: Path_) -> Iterator[tuple[str, Span]]:
        for key, value in self._get("variables", {}, path, table).items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            span = self._text.value(*path, "variables", key)
            yield f"{key}={self._environment(text, span)}", span
        for index, word in enumerate(self._get("words", (), path, table)):
            span = self._text.value(*path, "words", index)
            if "=" not in word or word.lower().startswith(("configfile=", "currentdirectory=")):
                self._add(f"'{word}' is no word NAME=VALUE", span, "files stand in `files`, the folder in `folder`")
                continue
            yield self._environment(word, span), span

    def _environment(self, text: str, span: Span) -> str:
        """Return the text with `${env:NAME}` replaced, if the project allows the variable."""

        def value(match: re.Match[str]) -> str:
            name = match[1]
            allowed = self._get("environment", ())
            if name not in allowed:
                hint = f'add environment = ["{name}"] at the top'
                self._add(f"the environment variable {name} is not allowed here", span, hint)
            elif name not in os.environ:
                self._add(f"the environment variable {name} is not set", span, f"set {name} before the command")
            return os.environ.get(name, "") if name in allowed else ""

        return _ENVIRONMENT.sub(value, text)

    def _files(self, text: str, path: Path_) -> list[Path]:
        """Return the files that a name or glob means."""
        span = self._text.value(*path)
        if not _GLOB.search(text):
            file = Path(os.path.abspath(self._folder / text))  # noqa: PTH100
            if not text or not is_file(file):
                self._add(f"there is no file '{text}'", span, _nearest_glob(self._folder, text))
                return []
            return [file]
        if text.startswith("/") or ".." in Path(text).parts:
            self._add("a glob is relative to the project, without ..", span)
            return []
        if text.count("**") > MAX_DEEP:
            self._add(f"a glob has more than {MAX_DEEP} times **", span, "write one ** for all folders below")
            return []
        files = _glob(self._folder, text)
        if not files:
            hint = _nearest_glob(self._folder, text) or "correct the glob, or remove it"
            self._add(f"no file matches '{text}'", span, hint)
        return files


def _glob(folder: Path, pattern: str, most: int = MAX_MATCHES) -> list[Path]:
    """Return the files below a folder that match, sorted, but not more than `most`."""
    pattern = f"{pattern}/*" if pattern.endswith("**") else pattern
    try:
        return sorted(itertools.islice((path for path in folder.glob(pattern) if path.is_file()), most))
    except (ValueError, NotImplementedError, OSError):
        return []


def _nearest_glob(folder: Path, pattern: str) -> str | None:
    """Return advice for a name or glob that matches nothing: the same with its first wrong part corrected."""
    parts = pattern.split("/")
    for number, part in enumerate(parts):
        if _GLOB.search(part):
            return None
        if exists(folder / part):
            folder /= part
            continue
        try:
            names = [entry.name for entry in folder.iterdir()]
        except OSError:
            return None
        meant = nearest_file(part, names, MIN_SIMILARITY)
        return f"did you mean '{'/'.join((*parts[:number], meant, *parts[number + 1 :]))}'?" if meant else None
    return None
