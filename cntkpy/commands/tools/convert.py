"""`cntkpy convert`: data from one format to another, in pieces, written in one step."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, printable, shorten, suggestion
from cntkpy.cntk_config.base.files import is_folder
from cntkpy.cntk_config.base.writing import atomic_write, not_written
from cntkpy.commands.console import print_error
from cntkpy.commands.same_file import keep_inputs
from cntkpy.commands.words import is_config_word

if TYPE_CHECKING:
    from cntkpy.readers.convert.batches import Batch, Stream
    from cntkpy.readers.convert.formats import Format
    from cntkpy.readers.convert.named_columns import NamedColumns
    from cntkpy.readers.convert.sources import Input


def convert(
    words: list[str],
    output: str,
    streams: tuple[str, ...] = (),
    *,
    source_format: str | None = None,
    target_format: str | None = None,
    precision: str = "float",
    quiet: bool = False,
    columns: NamedColumns | None = None,
) -> int:
    """Convert a data file, or what the reader section of a configuration reads; return the exit status.

    Args:
        words: the data files; or a configuration, overrides, and the path of a reader section.
        output: the file to be written.
        streams: NAME:DIM[:FORM] each; only those are converted, by default all.
        source_format: a name of `formats.FORMATS`; None: by the file's suffix. target_format: likewise.
        precision: "float" or "double".
        quiet: no progress, no summary.
        columns: of a table, which columns are what.
    """
    try:
        return _convert(words, output, streams, source_format, target_format, precision, quiet, columns)
    except UserError as error:
        print_error(error)
        return error.exit_code
    except OSError as error:  # of reading, errors are UserErrors that know the file
        problem = UserError("CannotWrite", not_written(error, output))
        print_error(problem)
        return problem.exit_code


def _convert(
    words: list[str],
    output: str,
    specs: tuple[str, ...],
    source_format: str | None,
    target_format: str | None,
    precision: str,
    quiet: bool,
    columns: NamedColumns | None,
) -> int:
    from cntkpy.commands.context.progress import make_progress
    from cntkpy.readers.convert.batches import parse_stream
    from cntkpy.readers.convert.formats import FORMATS, format_of
    from cntkpy.readers.convert.named_columns import NamedColumns

    columns = columns or NamedColumns()
    streams = [parse_stream(spec) for spec in specs]
    _no_stream_twice(streams)
    if is_folder(output):
        raise UserError("CannotWrite", f"{output} is a folder, not a file to be written")
    target = format_of(output, target_format, "--to")
    to = target.write()
    if to is None:
        written = ", ".join(name for name, file_format in FORMATS.items() if file_format.target)
        raise ConfigError("UnknownFormat", f"{target.name} is only read", hint=f"convert to one of {written}")
    if columns.predicted is None and not streams and target.name in ("parquet", "arrow") and len(words) == 1:
        source = None if is_config_word(words[0]) else format_of(words[0], source_format, "--from")
        if source is not None and source.name == "csv":
            return _copy(words[0], output, target, quiet, columns)
    result, named = _read(words, streams, source_format, precision, columns, quiet)
    beside = {stream: Path(output).with_suffix(f".{stream}.txt") for stream in result.names}
    keep_inputs(output, [*named, *result.files], [*_beside(output, target), *beside.values()])
    kept = _chosen(streams, list(result.streams))
    progress = make_progress(quiet)
    progress.start(f"{Path(words[0]).name} -> {Path(output).name}", result.samples)
    begin, samples, sequences = time.perf_counter(), 0, 0
    try:
        with to(output, kept, result) as writer:
            for batch in result.batches:
                writer.write(batch)
                samples += batch.samples
                sequences += len(batch.parts[kept[0].name].lengths)
                progress.update(samples, f"{samples:,} samples")
            if not samples:
                raise UserError("NoSamples", f"{words[0]} has no samples")
            for stream, path in beside.items():
                with atomic_write(path) as file:
                    file.write("".join(f"{name}\n" for name in result.names[stream]).encode("utf-8"))
    finally:
        progress.finish()
    if not quiet:
        size, seconds = Path(output).stat().st_size, time.perf_counter() - begin
        names = ", ".join(f"{s.name} ({s.form} {s.dim})" for s in kept)
        for loss in _losses(target, result.precision, sequences, samples):
            print(f"note: {loss}", file=sys.stderr)
        text = f"{sequences:,} sequences, {samples:,} samples of {names}; {size:,} bytes in {seconds:.1f} s"
        print(printable(f"{output}: {text}"))
        for stream, path in beside.items():
            classes = result.names[stream]
            listed = shorten(", ".join(classes), 100)
            print(printable(f"{path}: the {len(classes):,} classes of {stream}: {listed}"))
    return 0


def _copy(path: str, output: str, target: Format, quiet: bool, columns: NamedColumns) -> int:
    """Write the columns of a CSV file as those of a Parquet or Arrow file."""
    from cntkpy.readers.convert.columns import copy_columns

    if columns.missing is not None:
        message = "--missing is for streams, and here the columns are copied with their missing values"
        raise ConfigError("Conflict", message, hint="leave it out; readers fill them in: missing = NUMBER")
    begin = time.perf_counter()
    keep_inputs(output, [path], _beside(output, target))
    copied = copy_columns(path, output, target.name, columns.dropped)
    if not quiet:
        size, seconds = Path(output).stat().st_size, time.perf_counter() - begin
        kinds = shorten(", ".join(f"{name} ({kind})" for name, kind in copied.kinds.items()), 300)
        print(f"{output}: {copied.rows:,} rows of the columns {kinds}; {size:,} bytes in {seconds:.1f} s")
    return 0


def _read(
    words: list[str],
    streams: list[Stream],
    source_format: str | None,
    precision: str,
    columns: NamedColumns,
    quiet: bool,
) -> tuple[Input, list[str]]:
    """Return the input of a conversion, and the files that the words name."""
    from cntkpy.readers.convert.formats import format_of

    source = None if any(map(is_config_word, words)) else format_of(words[0], source_format, "--from")
    if columns.any and (source is None or not source.named_columns):
        options = {"--labels": columns.labels, "--target": columns.target, "--drop": columns.dropped or None}
        option = next((name for name, value in options.items() if value is not None), "--missing")
        message = f"{option} is about the columns of a table, and this is none"
        raise ConfigError("BadStream", message, hint="describe the streams with --stream")
    if source is None:
        return _section_of(words, precision, quiet), []
    named = [candidate for word in words for candidate in (word, word.partition(":")[2]) if candidate]
    keywords = {"options": columns} if source.named_columns else {}
    return source.read()(words, streams, precision, **keywords), named


def _beside(output: str, target: Format) -> list[Path]:
    """Return the files that a format writes next to the output."""
    return [Path(output).with_suffix(suffix) for suffix in target.beside]


def _no_stream_twice(streams: list[Stream]) -> None:
    for i, stream in enumerate(streams):
        if stream.name in (previous_stream.name for previous_stream in streams[:i]):
            raise ConfigError("BadStream", f"the stream '{stream.name}' is named twice")


def _chosen(asked: list[Stream], available: list[Stream]) -> list[Stream]:
    """Return the streams to be written: those asked for, which must be there and have the dimension that is asked
    for.
    """
    by_name = {stream.name: stream for stream in available}
    for stream in asked:
        if stream.name not in by_name:
            raise UserError("BadStream", f"there is no stream '{stream.name}'", hint=suggestion(stream.name, by_name))
    for item in asked:
        there = by_name[item.name].dim
        if item.dim != there:
            raise UserError(
                "BadStream",
                f"the stream '{item.name}' has {there} values, not {item.dim}",
                hint=f"write --stream {item.name}:{there}" + (f":{item.form}" if item.form != "dense" else ""),
            )
    return asked or available


def _losses(target: Format, precision: str, sequences: int, samples: int) -> list[str]:
    """Return the losses of a conversion to a format."""
    lost: list[str] = []
    if samples != sequences and not target.sequences:
        lost.append(f"{target.name} holds single samples: where sequences begin is lost; npz and ctf keep it")
    if precision == "double" and target.single:
        lost.append(f"{target.name} holds single precision: the last digits of double values are lost")
    return lost


def convert_to_mean(words: list[str], output: str, *, quiet: bool = False, modules: bool = False) -> int:
    """Write the mean picture of what a reader of images reads; return the exit status.

    Args:
        words: a configuration, overrides, and the path of a reader section.
        output: the XML file for the transform Mean.
        quiet: no progress, no summary.
        modules: import the Python module that a section names.
    """
    from cntkpy.commands.checks.reader_section import tell_problems
    from cntkpy.commands.context.progress import make_progress
    from cntkpy.commands.tools.preview import find_reader_section, placing
    from cntkpy.readers.formats.image.mean_picture import mean_picture, pictures_before_mean
    from cntkpy.readers.formats.image.storage import write_mean
    from cntkpy.readers.registry import refusing_modules

    progress = make_progress(quiet)
    try:
        section, _ = find_reader_section(words)
        tell_problems(section, quiet=quiet)
        with placing(section), refusing_modules(not modules):
            pictures, max_errors = pictures_before_mean(section)
            total = pictures.table.num_sequences
            progress.start(f"{Path(words[0]).name} -> {Path(output).name}", total)
            mean = mean_picture(
                pictures, max_errors=max_errors, progress=lambda done: progress.update(done, f"{done:,} pictures")
            )
        write_mean(output, mean)
    finally:
        progress.finish()
    if not quiet:
        size = " x ".join(map(str, mean.shape))
        print(f"{output}: the mean of {total:,} pictures of {size} (height x width x channels)")
    return 0


def _section_of(words: list[str], precision: str, quiet: bool) -> Input:
    """Return the data of a reader section as an input: whole sequences in the order of the data."""
    from cntkpy.commands.checks.reader_section import tell_problems
    from cntkpy.commands.tools.preview import find_reader_section, placing
    from cntkpy.readers.convert.sources import from_reader
    from cntkpy.readers.registry import create_reader

    section, _ = find_reader_section(words)
    tell_problems(section, quiet=quiet)
    for name, value in (("randomize", "none"), ("shuffle", "false"), ("truncated", "false")):
        section.insert(name, value)
    with placing(section):
        source = from_reader(create_reader(section, precision), precision)

    def batches() -> Iterator[Batch]:
        with placing(section):
            yield from source.batches

    return replace(source, batches=batches())
