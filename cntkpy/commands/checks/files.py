"""Input files that a configuration names and that are not there; with `--data`, their first lines."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span, UserError, nearest
from cntkpy.cntk_config.base.files import exists, is_folder
from cntkpy.cntk_config.base.names import is_url
from cntkpy.cntk_config.base.spelling import nearest_file
from cntkpy.cntk_config.base.systems.files import HAS_DRIVES
from cntkpy.cntk_config.base.systems.names import meant
from cntkpy.cntk_config.base.writing import why_no_folder, why_not_in_place, why_not_written
from cntkpy.cntk_config.declare import Parameter
from cntkpy.commands.actions.train import TrainParameters
from cntkpy.commands.actions.training import is_finished
from cntkpy.commands.catalogue.section_map import Use
from cntkpy.commands.checks.scan import TRAINING, trains
from cntkpy.commands.context.root import RootParameters
from cntkpy.readers.parameters import several_paths

if TYPE_CHECKING:
    from cntkpy.readers.formats.text.options import TextFormatParameters
    from cntkpy.readers.formats.text.stream_format import StreamFormat

INPUTS = ("file", "labelmappingfile", "editpath", "inputfile", "svdconfig", "scpfile", "mlffile",
          "wordclass", "wordmap", "token", "statelistpath", "mapfile", "rx")  # fmt: skip
"""Parameters, in lower case, that name files which must be there before a run."""
WRITING = ("writer", "written", "node")
"""Sections whose files are made by the run."""
OPENED = ("file", "editpath", "inputfile", "svdconfig", "scpfile", "mlffile", "wordmap", "token", "rx")
"""Parameters, in lower case, whose files a reader or an action opens in any case."""
SINGLE = ("path", "path or specifier")
"""Types of a single name."""
SPECIFIER = re.compile(r"(?:ark|scp)(?:,\w+)*:\s*+(.*?)(?::\d+)?")
"""A specifier of Kaldi, which may be in place of a file, and the file in it."""
LIST = "scpFile"
"""A list of files, which a writer reads, too."""
MAKERS = ("createLabelMap", "writeWordAndClass")
"""Actions that make files for others."""
MADE = ("labelmappingfile",)
"""Parameters, in lower case, that name what `createLabelMap` makes."""
LONGEST = 1 << 20
RECORDS = 100
"""Records of each file that `check --data` reads, unless `--records` says otherwise."""
LINES_AFTER_ERROR = 10_000
"""Lines that are looked at for the names of streams after an error of a run."""
OUTPUTS = ("outputpath", "outputfile", "outputmodelpath", "outputmodelfile")
"""Parameters, in lower case, that name files which a run writes."""
BEGINNING = "outputpath"
"""Parameter, in lower case, with which the names of several files begin."""
CURLY = re.compile("[\u201c\u201d\u201e]")
QUOTED = re.compile("'[^']*'")
"""A beginning in single quotes."""
DRIVE = re.compile(r"[A-Za-z]:[\\/]")
BACKSLASH = re.compile(r"[^\\]\\+(?:[^\\]|$)|^\\{2}")
"""A backslash between two names, or the beginning of the name of a server."""
SHELL = re.compile(
    r"^~[\w.-]*(?=[\\/]|$)|(?<![\w$])\$[{(]?(?P<name>[A-Za-z_]\w*)[})]?(?![\w$])|%(?P<percent>[A-Za-z_]\w*)%"
)
"""Texts in a path that a shell replaces."""
REPEATED = re.compile(r"\\+/?")
NETWORK_TEXTS = ("networkdescription", "ndlmacros")
"""Parameters, in lower case, that name texts of a network, which no command writes."""
TEXT_OUTPUTS = ("stderr", "Kaldicmd")
"""Parameters that are texts and name files which a run writes."""
_INDEX = re.compile(r"[0-9]{1,18}")
_TORN = re.compile(r"[0-9][ \t]+:|:[ \t]+[-+0-9]")
"""Blanks around the colon of a sparse value."""


def file_problems(top: Use, data: bool, records: int, wrong: set[int]) -> Iterator[Diagnostic]:
    """Report missing files; a hint only, since a configuration may be checked where its data are not.

    Args:
        top: the configuration.
        data: look at the first lines of the data, too.
        records: lines of each file that are looked at.
        wrong: gets the `id` of each use in whose data there is an error.
    """
    makes = any(set(use.actions) & set(MAKERS) for use in top.parts)
    made: set[str] | None = None
    for use in _reading(top):
        if use.section is top.section:
            continue
        for parameter in use.parameters():
            if not _is_input(use, parameter) or not parameter.type.name.startswith("path"):
                continue
            for path in paths_of(use, parameter):
                missing = list(_missing(path))
                if missing and makes:
                    made = made if made is not None else {name for part in top.parts for name in outputs(part)}
                    if parameter.name.lower() in MADE or os.path.normpath(str(path)) in made:
                        continue
                yield from missing
        if data:
            from cntkpy.commands.checks.shards import shard_problems
            from cntkpy.commands.checks.tables import table_problems

            problems = [*_data(use, records), *table_problems(use), *shard_problems(use)]
            if any(problem.severity == "error" for problem in problems):
                wrong.add(id(use))
            yield from problems


def missing_inputs(top: Use) -> Iterator[Diagnostic]:
    """Report data and scripts that a command is going to open, that are missing, and that no command writes before.

    A training that has been finished opens nothing.
    """
    written = set[str]()
    for command in top.parts:
        if any(use.open for use in command.walk()):
            return
        written.update(outputs(command))
        if _is_finished(command):
            continue
        for use in _reading(command):
            for path in needed_files(use, bool(set(command.actions) & set(MAKERS))):
                if not is_output(str(path), written):
                    yield from _missing(path, "MissingInput")
        if makes_anything(command):
            return


def unwritable_outputs(root: RootParameters, top: Use, listed: Use) -> Iterator[Diagnostic]:
    """Report models, logs and output files that are folders, or whose folder cannot be made or written to.

    Those of commands that are not among the `listed` ones are warnings.
    """
    yield from _unwritable_of_all(root, top)
    runs = set(map(id, listed.parts))
    for command in top.parts:
        problems = _unwritable_of(command)
        yield from problems if id(command) in runs else (replace(problem, severity="warning") for problem in problems)


def _unwritable_of(command: Use) -> Iterator[Diagnostic]:
    """Report the same of one command."""
    for use in command.walk():
        for parameter in use.parameters():
            name = parameter.name.lower()
            written = name in OUTPUTS or (trains(command) and name == "modelpath")
            if not written or not parameter.type.name.startswith("path"):
                continue
            if not (value := use.value(parameter)):
                continue
            is_model = name == "modelpath"
            problems = list(_unwritable(value, single=name != BEGINNING, regular=is_model))
            if problems and is_model and _is_finished(command):
                continue  # nothing is written: the model may be in a folder of others
            yield from problems


def _unwritable_of_all(root: RootParameters, top: Use) -> Iterator[Diagnostic]:
    """Report the log, and the file that says that all is done: it is written last, and nothing makes its folder."""
    try:
        log, done, suffixed = root.given("stderr"), root.given("doneFile"), root.timestamping
    except ConfigError:  # reported where values are looked at
        return
    if log:
        yield from _unwritable(log, single=not suffixed, in_place=not suffixed)
    if not done:
        return
    wrong = list(_unwritable(done, single=True, in_place=True))
    yield from wrong
    folder = Path(str(done)).parent
    if wrong or exists(folder):
        return
    made = [*([os.path.normpath(str(log))] if log else []), *(name for part in top.parts for name in outputs(part))]
    if not any(folder in Path(name).parents for name in made):
        message = f"{done.path}: '{done}' cannot be written: nothing makes the folder '{folder}'"
        yield Diagnostic("CannotWrite", message, done.span, "make it before the run", severity="warning")


def _unwritable(
    value: ConfigValue, single: bool, in_place: bool = False, regular: bool = False
) -> Iterator[Diagnostic]:
    """Return why a file cannot be written; `single`: the value is its whole name; `in_place`: it is overwritten;
    `regular`: it is no device.
    """
    path = str(value)
    folder = single and is_folder(path)
    why = "there is a folder of that name" if folder else why_no_folder(path)
    hint = "give the name of a file" if folder else None
    if regular and not why and (why := why_not_written(path)):
        hint = "give the name of a file"
    if in_place and not why and (why := why_not_in_place(path)):
        hint = "remove it, or give another name"
    if path != "-" and why:
        yield Diagnostic("CannotWrite", f"{value.path}: '{value}' cannot be written: {why}", value.span, hint)


def foreign_texts(root: ConfigParameters, top: Use) -> Iterator[Diagnostic]:
    """Report paths with the letter of a drive where there are none, and quotation marks that are none here."""
    for name in root.names():
        entry = root.definition(name)
        for part in entry.parts if entry is not None else ():
            for match in CURLY.finditer(part.text.string, part.start, part.end):
                message = f"{match[0]} is an ordinary character, no quotation mark"
                span = part.text.span(match.start())
                yield Diagnostic("CurlyQuotes", message, span, 'write "', severity="warning")
    for use in top.walk():
        for parameter in use.parameters():
            if not parameter.type.name.startswith("path") and parameter.name not in TEXT_OUTPUTS:
                continue
            value = use.value(parameter)
            if value and QUOTED.match(value) and not exists(Path(str(value))):
                message = f"{value.path}: the single quotes of {value} are part of the name"
                yield Diagnostic("CurlyQuotes", message, value.span, 'write " or no quotes', severity="warning")
            if value and not (_is_input(use, parameter) and exists(Path(str(value)))):
                yield from _shell_text(value)
            if value:
                yield from _windows_path(value, is_input=_is_input(use, parameter))


def _shell_text(value: ConfigValue) -> Iterator[Diagnostic]:
    """Report parts of a path that a shell would replace: `~/`, `${HOME}`, `$HOME`, `%HOME%`."""
    for match in SHELL.finditer(value):
        name = match["name"] or match["percent"]
        if name:
            kind, why = "LostDollar", "variables of the environment mean nothing here"
        else:
            kind, why = "ShellText", "only a shell replaces it"
        message = f"{value.path}: '{match[0]}' is ordinary text: {why}"
        hint = f'write ${name or "Home"}$, and on the command line {name or "Home"}="${name or "HOME"}"'
        yield Diagnostic(kind, message, value.locate(match.start(), len(match[0])), hint, severity="warning")


def _windows_path(value: ConfigValue, is_input: bool) -> Iterator[Diagnostic]:
    """Find a path of Windows, which would be one name in the current folder; of an input only one with a drive."""
    if DRIVE.match(value) or not is_input:
        yield from windows_output(str(value), value.path, value.span)


def windows_output(path: str, name: str, span: Span | None) -> Iterator[Diagnostic]:
    """Find that a file which a run writes has a path of Windows, on another system.

    Args:
        path: the file.
        name: what names it, for the message.
        span: where it is named.
    """
    if HAS_DRIVES:
        return
    if DRIVE.match(path):
        message = f"{name}: '{path}' is a path of Windows; here it names a file in the current folder"
        behind = path[3:].replace("\\", "/")
        hint = f"write $Root$/{behind}, with a variable that the command line sets: Root=/FOLDER"
    elif BACKSLASH.search(path):
        message = f"{name}: '{path}' is a path of Windows; here the backslash is part of a name"
        hint = f"separate folders by /: {REPEATED.sub('/', path)}"
    else:
        return
    yield Diagnostic("WindowsPath", message, span, hint, severity="warning")


def _reading(use: Use) -> Iterator[Use]:
    """Yield a use and all inside it, but none that reads a cache in place of the files that it names."""
    try:
        if any(declared(use.section).needs_no_files() for declared in use.declared):
            return
    except ConfigError:  # reported where values are looked at
        pass
    yield use
    for part in use.parts:
        yield from _reading(part)


def needed_files(use: Use, makes: bool) -> Iterator[ConfigValue]:
    """Yield the files that are opened in any case; `makes`: the command makes the names of classes."""
    for parameter in filter(functools.partial(_is_input, use), use.parameters()):
        names = parameter.name == "labelMappingFile" and (
            use.role == "format" or use.parameter("mlfFile") is not None or (not makes and _names_classes(use))
        )
        opened = parameter.name.lower() in OPENED or names  # other readers write the names that they find
        if opened and parameter.type.name.startswith("path") and not parameter.ignored:
            yield from paths_of(use, parameter)


def inputs(command: Use) -> Iterator[ConfigValue]:
    """Yield the names of all files that a command reads, there or not."""
    for use in command.walk():
        for parameter in use.parameters():
            if _is_input(use, parameter) and parameter.type.name.startswith("path"):
                yield from paths_of(use, parameter)


def _names_classes(use: Use) -> bool:
    """Return whether a section of labels has names of classes that a list has to know."""
    from cntkpy.readers.formats.uci.parameters import LabelParameters

    try:
        return LabelParameters in use.declared and LabelParameters(use.section).label_type == "category"
    except ConfigError:
        return False  # found where values are looked at


def _is_input(use: Use, parameter: Parameter[Any]) -> bool:
    """Return whether a parameter names files that are read; of those of a writer, it is the list of what to write."""
    if use.role.partition(" ")[0] in WRITING:
        return LIST in parameter.aliases
    return parameter.name.lower() in INPUTS


def paths_of(use: Use, parameter: Parameter[Any]) -> Iterator[ConfigValue]:
    """Return the paths that a section gives for a parameter; none where its value cannot be read."""
    try:
        value = parameter.value(use.section)
        if value:
            yield from filter(None, [value] if parameter.type.name in SINGLE else several_paths(value))
    except ConfigError:
        return


def makes_anything(command: Use) -> bool:
    """Return whether a command may write files that its section does not name."""
    return bool(set(command.actions) & set(MAKERS)) or any(use.open for use in command.walk())


def outputs(command: Use) -> Iterator[str]:
    """Yield the values of a command that may name outputs: a path, or the prefix of several paths.

    The name of a stream and other texts name no output. If they did, a missing file whose name begins alike would
    count as written.
    """
    for use in command.walk():
        writes = use.role.partition(" ")[0] in WRITING
        for parameter in use.parameters():
            kind = parameter.type.name
            named = kind.startswith("path") or (kind.startswith("text") and (writes or parameter.name in TEXT_OUTPUTS))
            if not named or parameter.type.choices or _is_input(use, parameter):
                continue
            if parameter.name.lower() not in NETWORK_TEXTS and (value := use.value(parameter)):
                yield os.path.normpath(str(value))


def is_output(path: str, written: Collection[str]) -> bool:
    """Return whether a file is one of the outputs, or its name continues one after a point or in a folder."""
    name = os.path.normpath(path)
    ends = (len(name), *(end for end, character in enumerate(name) if character in (".", os.sep)))
    return any(name[:end] in written for end in ends)


def _is_finished(command: Use) -> bool:
    """Return whether the command only trains, and its model is there."""
    if not set(command.actions) <= set(TRAINING):
        return False
    try:
        return is_finished(TrainParameters(command.section))
    except ConfigError:
        return False


def is_missing(value: ConfigValue) -> bool:
    """Return whether a value names a file that does not exist."""
    return any(_missing(value))


def _missing(value: ConfigValue, kind: str = "MissingFile") -> Iterator[Diagnostic]:
    """Report a file that does not exist; `kind` says whether that is an error. URLs are not looked at."""
    if is_url(str(value)):
        return
    inside = SPECIFIER.fullmatch(str(value).strip()) if not exists(Path(str(value))) else None
    path = Path(inside[1] if inside else str(value))
    if exists(path) or any(c in str(value) for c in ",\n|") or str(value).startswith("-"):
        return  # or it is not a name
    if "*" in str(value):
        if inside is None and not _matches(path):
            hint = f"the current directory is {Path.cwd()}"
            yield Diagnostic(kind, f"{value.path}: no file matches '{value}'", value.span, hint)
        return
    # From the top: a name of many parts that does not exist ends at its first part.
    folder = None
    for parent in takewhile(exists, reversed(path.parents)):
        folder = parent
    reason = f"the folder '{path.parent}' does not exist" if folder != path.parent else "no such file"
    hint = _of_other_system(path) or (_alike(path) if folder == path.parent else None)
    hint = hint or f"the current directory is {Path.cwd()}"
    yield Diagnostic(kind, f"{value.path}: '{value}': {reason}", value.span, hint)


def _matches(path: Path) -> bool:
    """Return True if a file matches a pattern, or that is not known; some readers take patterns, others tell."""
    if str(path).count("**") > 1:
        return True
    import glob

    try:
        return next(glob.iglob(str(path), recursive=True), None) is not None  # noqa: PTH207 - patterns with a root
    except OSError:
        return True


def _of_other_system(path: Path) -> str | None:
    """Return a hint for a file name that is right on Windows."""
    intended = meant(str(path))
    if intended is None:
        return None
    why = "folders are separated by /" if "\\" in str(path) else "small and capital letters differ"
    return f"did you mean '{intended}'? On this system {why}"


def _alike(path: Path) -> str | None:
    """Return a hint that names a similar file of the same folder."""
    try:
        alike = nearest_file(path.name, [entry.name for entry in path.parent.iterdir()])
    except OSError:
        return None
    return f"did you mean '{alike}'?" if alike is not None else None


@dataclass
class _Sequence:
    """A sequence of a file in text format.

    Attributes:
        line: the number of its first line.
        key: its id.
        counts: by alias, its samples.
        rows: how many of its lines have a sample of a declared stream.
    """

    line: int
    key: bytes
    counts: dict[str, int]
    rows: int = 0


def _sequences(lines: list[bytes], names: Iterable[str]) -> list[_Sequence]:
    """Return the sequences of the first lines of a file, without the last one if it may continue after them.

    names: of the streams, as the file has them.
    """
    sequences: list[_Sequence] = []
    last = b""
    for number, line in enumerate(filter(None, lines), 1):
        identifier, *samples = line.split(b"|")
        key = identifier.strip()
        if key and key != last:
            last = key
            sequences.append(_Sequence(number, key, dict.fromkeys(names, 0)))
        sample_names = (
            (sample.split() or [b""])[0].decode("utf-8", "replace") for sample in samples if sample[:1].strip()
        )
        known = [name for name in sample_names if name in names]
        if sequences and known:
            sequences[-1].rows += 1
            for name in known:
                sequences[-1].counts[name] += 1
    return sequences if not lines[-1] else sequences[:-1]


def _odd_sequences(
    path: str, sequences: list[_Sequence], p: TextFormatParameters, span: Span | None
) -> Iterator[Diagnostic]:
    """Report the first id that comes again after others, and the first sequence with more rows than samples."""
    seen: dict[bytes, int] = {}
    for sequence in sequences:
        if sequence.key in seen:
            key = sequence.key.decode("utf-8", "replace")
            message = f"line {sequence.line} of '{path}' begins a second sequence of the id {key}, "
            message += f"which line {seen[sequence.key]} has"
            hint = "put the lines of a sequence one after the other"
            yield Diagnostic("BadSequences", message, span, hint, severity="warning")
            break
        seen[sequence.key] = sequence.line
    if any(form.defines_mb_size for form in p.formats()):
        return
    for sequence in sequences:
        most = max(sequence.counts.values())
        if 0 < most < sequence.rows:
            message = (
                f"the sequence that begins in line {sequence.line} of '{path}' has {sequence.rows} rows, "
                f"but no input has more than {most} samples"
            )
            hint = "write a sample of each input into one row; a run counts such a sequence for maxErrors"
            yield Diagnostic("BadSequences", message, span, hint, severity="warning")
            return


def _data(use: Use, records: int) -> Iterator[Diagnostic]:
    """Report the first lines of a file in text format against the declared streams."""
    text = _text_of(use)
    if text is None:
        return
    p, path, value = text
    try:
        formats, errors = {stream.alias: stream for stream in p.formats()}, p.max_errors
    except ConfigError:
        return
    try:
        lines = _lines(path, records)
    except OSError as error:
        if exists(path):  # a missing file is found elsewhere
            message = f"{value.path}: '{path}' cannot be read: {error.strerror or error}"
            yield Diagnostic("CannotRead", message, value.span)
        return
    except UserError as error:  # a compressed file is damaged, or a package is missing
        yield Diagnostic("CannotRead", f"{value.path}: {error.message.rstrip('.')}", value.span, error.hint)
        return
    every = bool(p.skip_sequence_ids) or lines[0].lstrip().startswith(b"|")
    if not every:
        yield from _odd_sequences(path, _sequences(lines, formats), p, value.span)
    if not errors:
        yield from _unlike(path, lines, formats, use, value.span)


def _is_value(word: str, sparse: bool) -> bool:
    """Return whether a word may be a value of a stream."""
    index, colon, value = word.partition(":") if sparse else ("0", ":", word)
    try:
        float(value)
    except ValueError:
        return False
    return bool(colon and _INDEX.fullmatch(index))


def _unlike(
    path: str, lines: list[bytes], formats: dict[str, StreamFormat], use: Use, span: Span | None
) -> Iterator[Diagnostic]:
    """Report the first value of each stream that is not as it is declared; formats: by alias, what is left over."""
    for number, line in enumerate(lines, 1):
        for part in line.decode("utf-8", "replace").split("|")[1:]:
            name, *numbers = part.split() or [""]
            form = formats.get(name)
            if form is None:
                continue
            if numbers and _is_value(numbers[0], not form.sparse) and not (form.sparse and ":" in part):
                opposite = "dense" if form.sparse else "sparse"
                message = (
                    f"line {number} of '{path}': the values of the stream '{form.name}' are {opposite}: '{numbers[0]}'"
                )
                setting = use.section.section("input").section(form.name).find("format")
                hint = f"write format = {opposite}"
                yield Diagnostic("DataMismatch", message, setting.span if setting is not None else span, hint)
                del formats[name]
                continue
            if len(line) < LONGEST and (bad := next((w for w in numbers if not _is_value(w, form.sparse)), None)):
                problem = "not index:value" if form.sparse else "not a number"
                message = f"line {number} of '{path}': the stream '{form.name}' has '{bad[:40]}', which is {problem}"
                hint = None
                if form.sparse and _TORN.search(part):
                    from cntkpy.readers.formats.text.messages import TORN_HINT

                    hint = TORN_HINT
                yield Diagnostic("DataMismatch", message, span, hint)
                del formats[name]
                continue
            count, severity, hint = len(numbers), "error", None
            if form.sparse:
                indices = [word.partition(":")[0] for word in numbers]
                high = max((int(index) for index in indices if _INDEX.fullmatch(index)), default=-1)
                wrong = f"index {high}, but its dim is {form.dim}" if high >= form.dim else None
            else:
                wrong = f"{_values(count)}, but its dim is {form.dim}" if count != form.dim else None
                hint = f"if every sample has {_values(count)}, write dim = {count}" if count else None
            if wrong and not form.sparse and count < form.dim:  # a run warns, too
                wrong, severity = f"{wrong}: the rest is zero", "warning"
            if wrong:
                setting = use.section.section("input").section(form.name).find("dim")
                message = f"line {number} of '{path}': the stream '{form.name}' has {wrong}"
                place = setting.span if setting is not None else span
                yield Diagnostic("DataMismatch", message, place, hint, severity=severity)
                del formats[name]


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"


def _absent(
    path: str, lines: list[bytes], seen: set[str], formats: dict[str, StreamFormat], use: Use, span: Span | None
) -> Iterator[Diagnostic]:
    """Report streams, by their aliases, of which the lines have no value; `seen`: the names that they have."""
    from cntkpy.readers.formats.text.messages import table_hint

    convert = "" if seen else table_hint(path, lines[0])
    for name, form in formats.items():
        if name in seen or not any(lines):
            continue
        where = f" in its first {len(lines)} lines" if lines[-1] else ""  # else these are all
        message = f"'{path}' has no values called '{name}'{where}"
        hint = f"the file has: {', '.join(sorted(seen)) or 'none'}"
        if meant := nearest(name, seen):
            hint = f"did you mean '{meant}'? {hint}"
        section = use.section.section("input").section(form.name)
        alias = section.find("alias")
        place = span if convert else alias.span if alias is not None else section.span
        yield Diagnostic("DataMismatch", message, place or span, f"it {convert}" if convert else hint)


def absent_streams(command: Use) -> Iterator[Diagnostic]:
    """Find streams that files in text format do not have, after a run has met sequences without them."""
    for use in command.walk():
        text = _text_of(use)
        if text is None:
            continue
        p, path, value = text
        try:
            formats = {stream.alias: stream for stream in p.formats()}
            lines = _lines(path, LINES_AFTER_ERROR)
        except (OSError, UserError):
            continue
        if seen := _names_in(lines):  # else the file is of another format, and the error of the run says so
            yield from _absent(path, lines, seen, formats, use, value.span)


def _names_in(lines: list[bytes]) -> set[str]:
    """Return the names of inputs in lines of text format."""
    parts = (part.split() for line in lines for part in line.decode("utf-8", "replace").split("|")[1:])
    return {part[0] for part in parts if part}


def _lines(path: str, count: int) -> list[bytes]:
    """Return the first lines of a text file, fewer if it is shorter."""
    from cntkpy.readers.common.packed import open_data

    with open_data(path) as file:
        return [file.readline(LONGEST) for _ in range(count)]


def _text_of(use: Use) -> tuple[TextFormatParameters, str, ConfigValue] | None:
    """Return the parameters of a section that reads text format, and its file; None for other sections."""
    if not {kind.__name__ for kind in use.declared} & {"TextReaderParameters", "TextFormatParameters"}:
        return None
    from cntkpy.readers.formats.text.options import TextFormatParameters

    p = TextFormatParameters(use.section)
    try:
        path, value = str(p.file), p.given("file")
    except ConfigError:
        return None  # found where values are looked at
    return (p, path, value) if value is not None else None
