"""`cntkpy convert`: data from one format to another, in pieces, written in one step."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from cntk_config.diagnostics import UserError, suggestion
from cntk_config.files import atomic_write
from commands.words import is_config_word

SUFFIXES = {".ctf": "ctf", ".txt": "ctf", ".uci": "uci", ".data": "uci", ".npz": "npz"}
FORMATS = ("ctf", "uci", "npz")


def convert(
    words: list[str], output: str, streams: tuple[str, ...] = (), *, source_format: str | None = None,
    target_format: str | None = None, precision: str = "float", quiet: bool = False,
) -> int:  # fmt: skip
    """Convert a data file, or what the reader section of a configuration reads; return the exit status.

    Args:
        words: the data file; or a configuration, overrides, and the path of a reader section.
        output: the file to be written.
        streams: NAME:DIM[:FORM] each; for text format and archives only those, by default all.
        source_format: "ctf", "uci" or "npz"; None: by the file's suffix. target_format: likewise.
        precision: "float" or "double".
        quiet: no progress, no summary.
    """
    try:
        return _convert(words, output, streams, source_format, target_format, precision, quiet)
    except UserError as error:
        print(error.diagnostic.render(), file=sys.stderr)
        return error.exit_code


def _convert(
    words: list[str], output: str, specs: tuple[str, ...], source_format: str | None, target_format: str | None,
    precision: str, quiet: bool,
) -> int:  # fmt: skip
    from commands.progress import make_progress
    from readers.convert import sources
    from readers.convert.batches import Stream, parse_stream
    from readers.convert.targets import TARGETS

    streams = [parse_stream(one) for one in specs]
    target = _format(output, target_format, "--to")
    if any(map(is_config_word, words)):
        from commands.preview import find_reader_section
        from readers.reader import create_reader

        section, _ = find_reader_section(words)
        section.insert("randomize", "none")
        found = sources.from_reader(create_reader(section, precision))
    elif len(words) != 1:
        raise click.UsageError("Name one data file, or configFile=FILE and a reader section, and the output.")
    else:
        source = _format(words[0], source_format, "--from")
        if Path(output).exists() and Path(output).samefile(words[0]):
            raise UserError(f"{output} would be written over itself", kind="SameFile")
        if source == "npz":
            found = sources.from_npz(words[0], streams)
        else:
            found = (sources.from_ctf if source == "ctf" else sources.from_uci)(words[0], streams, precision)
    chosen = {s.name: s for s in streams}
    known = [s.name for s in found.streams]
    for name in chosen:
        if name not in known:
            raise UserError(f"there is no stream '{name}'", hint=suggestion(name, known), kind="BadStream")
    by_name = {s.name: s for s in found.streams}
    kept = [Stream(n, by_name[n].dim, chosen[n].form) for n in chosen] if chosen else list(found.streams)
    progress = make_progress(quiet)
    progress.start(f"{Path(words[0]).name} -> {Path(output).name}", found.samples)
    begin, samples, sequences = time.perf_counter(), 0, 0
    try:
        with atomic_write(output) as file:
            writer = TARGETS[target](file, kept)
            for batch in found.batches:
                writer.write(batch)
                samples += batch.samples
                sequences += len(batch.parts[kept[0].name].lengths)
                progress.update(samples, f"{samples:,} samples")
            writer.finish()
    finally:
        progress.finish()
    if not quiet:
        size, seconds = Path(output).stat().st_size, time.perf_counter() - begin
        names = ", ".join(f"{s.name} ({s.form} {s.dim})" for s in kept)
        print(f"{output}: {sequences:,} sequences, {samples:,} samples of {names}; {size:,} bytes in {seconds:.1f} s")
    return 0


def _format(path: str, given: str | None, option: str) -> str:
    if given is not None:
        return given
    found = SUFFIXES.get(Path(path).suffix.lower())
    if found is None:
        raise UserError(
            f"the format of {path} is not known", hint=f"name it: {option} {'|'.join(FORMATS)}", kind="UnknownFormat"
        )
    return found
