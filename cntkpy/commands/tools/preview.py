"""`cntkpy preview`: what a reader section reads, before anything is trained on it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from cntkpy.cntk_config import load
from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, printable
from cntkpy.cntk_config.export import split_path
from cntkpy.cntk_config.parameters import ConfigParameters, ConfigValue
from cntkpy.commands.actions.evaluate import TestParameters
from cntkpy.commands.checks.reader_section import tell_problems
from cntkpy.commands.console import print_error
from cntkpy.commands.context.root import RootParameters
from cntkpy.commands.context.run_context import data_precision
from cntkpy.commands.tools.previews.forms import form_of, refuse_unknown
from cntkpy.commands.tools.previews.show import cut, print_file, section_of
from cntkpy.commands.words import sort_words

if TYPE_CHECKING:
    from cntkpy.readers.convert.statistics import StreamStatistics
    from cntkpy.readers.minibatch import Minibatch
    from cntkpy.readers.reader import Reader

MEASURE_SECONDS = 1.0
"""Seconds of reading to measure its speed."""


def preview(
    words: list[str],
    *,
    minibatches: int = 4,
    size: int = 256,
    samples: int = 3,
    as_json: bool = False,
    picture: str | None = None,
    modules: bool = False,
) -> int:
    """Read the first minibatches of a reader section and describe them; return the exit status.

    Args:
        words: a configuration, overrides, and at most one path such as `train/reader` or `train`; or a file of data.
        minibatches: how many are looked at. size: of how many samples.
        samples: how many of the first sequences are shown.
        as_json: print JSON.
        picture: a file for a picture of the first samples.
        modules: import the Python module that a section names.
    """
    from cntkpy.readers.registry import refusing_modules

    try:
        form = form_of(words[0])
        if form is not None and len(words) > 1:
            message = f"'{words[0]}' is a file of data ({form}), which has no section '{words[1]}'"
            raise ConfigError("UnreadWord", message, None, f"write: cntkpy preview {words[0]}")
        if form is not None:
            section = section_of(words[0], form)
            if section is None:
                print_file(words[0], form, samples, as_json)
                return 0
            name = words[0]
        else:
            refuse_unknown(words[0])
            section, name = find_reader_section(words)
            tell_problems(section)
        with placing(section), refusing_modules(not modules):
            summary = describe(section, name, minibatches, size, samples, Path(picture) if picture else None)
    except UserError as error:
        print_error(error)
        return error.exit_code
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        print("\n".join((cut if form is not None else printable)(line) for line in as_text(summary).split("\n")))
    return 0


@contextmanager
def placing(section: ConfigParameters) -> Generator[None]:
    """Errors in the data that a section describes get a place in the configuration."""
    from cntkpy.readers.errors import DataError

    try:
        yield
    except DataError as error:
        from cntkpy.commands.runner.blame import placed_in_reader

        raise placed_in_reader(error, section) from error.__cause__


def find_reader_section(words: list[str]) -> tuple[ConfigParameters, str]:
    """Return the reader section that words name, and its path; without a path, that of the first command that has
    one.
    """
    chosen = sort_words(words, files=1)
    if len(chosen.rest) > 1:
        raise click.UsageError(f"One path at most can be named; there are: {' '.join(chosen.rest)}")
    root = load(chosen.configurations[0])
    if names := split_path(root, "".join(chosen.rest)):
        section, path = root, "/".join(names)
        for part in names:
            section = section.section(ConfigValue(part))
        if not _is_reader(section) and TestParameters.reader.find(section):
            section, path = TestParameters(section).reader, f"{path}/reader"
        elif not _is_reader(section):
            known = [f"{name}/reader" for name, inside in root.inner() if TestParameters.reader.stands_in(inside)]
            raise ConfigError(
                "MissingSection",
                f"{path} is not a reader section and has none",
                section.span,
                f"name one, such as {' or '.join(known[:3])}" if known else "add reader=[...]",
            )
        return section, path
    for command in [*RootParameters(root).command, *(ConfigValue(name) for name, _ in root.inner())]:
        try:
            return TestParameters(root.section(command)).reader, f"{command}/reader"
        except ConfigError:
            continue
    raise ConfigError("MissingSection", "no command has a reader section", None, "name one, such as train/reader")


def _is_reader(section: ConfigParameters) -> bool:
    from cntkpy.readers.formats.text.options import TextFormatParameters
    from cntkpy.readers.parameters import ReaderParameters

    text = TextFormatParameters
    marks = (ReaderParameters.reader_type, ReaderParameters.deserializers, text.input, text.file)
    return any(mark.stands_in(section) for mark in marks)


def describe(
    section: ConfigParameters, name: str, minibatches: int, size: int, samples: int, picture: Path | None = None
) -> dict[str, Any]:
    """Return the first minibatches of a reader as JSON-able data; draw the first minibatch into `picture`."""
    from cntkpy.readers.registry import create_reader

    precision = data_precision(str(RootParameters(section).precision))
    begin = time.perf_counter()
    reader = create_reader(section, precision)
    opened = time.perf_counter() - begin
    try:
        preview = _Preview(reader)
        preview.read(minibatches, size, samples, picture)
        total, paths = _size_and_files(reader)
        bytes_ = sum(path.stat().st_size for path in paths if path.is_file())
        if preview.ended and paths:
            preview.read_samples, preview.seconds = _read_again(section, precision, size)
        labels = {stream.name: reader.get_label_mapping(stream.name) for stream in reader.streams}
        return {
            "section": name,
            "reader": _kind(section),
            "samples": total or None,
            "bytes": bytes_ or None,
            "seconds_to_open": round(opened, 3),
            "minibatches": preview.minibatches,
            "samples_seen": preview.samples,
            "whole_sweep_read": preview.ended,
            "speed": _speed(preview.read_samples, preview.seconds, bytes_ / 1e6 / total if total else 0),
            "streams": [
                statistics.as_dict(labels.get(stream) or {}) for stream, statistics in preview.statistics.items()
            ],
            "first": preview.texts,
            "picture": str(picture) if picture and preview.minibatches else None,
            "not_drawn": preview.not_drawn,
        }
    finally:
        reader.close()


class _Preview:
    """The first minibatches of a reader, and the speed of reading."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.statistics: dict[str, StreamStatistics] = {}
        self.texts: list[dict[str, Any]] = []
        self.minibatches = self.samples = 0
        """Minibatches that are shown."""
        self.read_samples, self.seconds = 0, 0.0
        """Minibatches that are read to measure the speed, and the time."""
        self.ended = False
        self.not_drawn: list[str] = []

    def read(self, minibatches: int, size: int, samples: int, picture: Path | None) -> None:
        """Read minibatches of `size` samples; look at the first ones and read on to measure the speed."""
        from cntkpy.readers.convert.statistics import StreamStatistics

        self.reader.start_minibatch_loop(size, 0)
        self.statistics = {stream.name: StreamStatistics(stream) for stream in self.reader.streams}
        while True:
            begin = time.perf_counter()
            minibatch = self.reader.get_minibatch()
            self.seconds += time.perf_counter() - begin
            if minibatch is None:
                self.ended = True
                return
            self.read_samples += minibatch.num_samples
            if self.minibatches < minibatches:
                self._look_at(minibatch, samples, picture)
            elif self.seconds > MEASURE_SECONDS:
                return

    def _look_at(self, minibatch: Minibatch, samples: int, picture: Path | None) -> None:
        from cntkpy.commands.tools.preview_picture import draw
        from cntkpy.readers.convert.statistics import texts
        from cntkpy.readers.formats.image.sheet import write_sheet

        self.minibatches += 1
        self.samples += minibatch.num_samples
        for stream, statistics in self.statistics.items():
            statistics.add(minibatch.streams[stream], minibatch.layouts[stream])
        if picture and self.minibatches == 1 and not write_sheet(picture, self.reader, minibatch):
            self.not_drawn = draw(self.reader.streams, minibatch, picture)
        if len(self.texts) < samples:
            self.texts += texts(minibatch, samples - len(self.texts))


def _size_and_files(reader: Reader) -> tuple[int, list[Path]]:
    """Return the samples of a sweep, 0 if they are not known, and the files; a plug-in may know neither."""
    from cntkpy.readers.contracts import KnowsSize, ReadsFiles

    plugin = cast("object", reader)
    total = plugin.samples_per_sweep if isinstance(plugin, KnowsSize) else 0
    return total, [Path(path) for path in (plugin.files if isinstance(plugin, ReadsFiles) else ())]


def _speed(samples: int, seconds: float, megabytes_per_sample: float) -> dict[str, float | None]:
    megabytes = megabytes_per_sample * samples
    return {
        "samples_per_second": round(samples / seconds) if samples and seconds else None,
        "megabytes_per_second": round(megabytes / seconds, 1) if megabytes_per_sample and seconds else None,
    }


def _read_again(section: ConfigParameters, precision: str, size: int) -> tuple[int, float]:
    """Samples and seconds of one more sweep: the first one of small data is spent on loading the program."""
    from cntkpy.readers.registry import create_reader

    log = logging.getLogger("cntkpy.readers")
    log.disabled, was = True, log.disabled
    samples, reader = 0, create_reader(section, precision)
    try:
        begin = time.perf_counter()
        reader.start_minibatch_loop(size, 0)
        while (minibatch := reader.get_minibatch()) is not None:
            samples += minibatch.num_samples
        return samples, time.perf_counter() - begin
    finally:
        log.disabled = was
        reader.close()


def _kind(section: ConfigParameters) -> str:
    from cntkpy.readers.parameters import ReaderParameters

    if ReaderParameters.deserializers.find(section):
        return "CompositeDataReader"
    return str(ReaderParameters(section).reader_type)


def as_text(data: dict[str, Any]) -> str:
    """Return the description for people."""
    speed = data["speed"]
    head = f"{data['section']}: {data['reader']}"
    if data["samples"]:
        head += f", {data['samples']:,} samples"
    if data["bytes"]:
        head += f", {data['bytes'] / 1e6:,.1f} MB"
    lines = [head]
    rate = f", then {speed['samples_per_second']:,} samples/s" if speed["samples_per_second"] else ""
    if speed["megabytes_per_second"] is not None:
        rate += f", {speed['megabytes_per_second']:,} MB/s"
    lines.append(f"opened in {data['seconds_to_open']:.2f} s{rate}")
    lines.append(f"{data['minibatches']} minibatches, {data['samples_seen']:,} samples looked at:")
    for s in data["streams"]:
        lines.append("")
        lines.append(f"{s['name']}: {s['storage']}, {'x'.join(map(str, s['shape']))}, {s['type']}")
        low, mean, high = (s["length"][k] for k in ("min", "mean", "max"))
        lengths = f"all of {low}" if low == high else f"of {low} to {high}, {mean:.3g} on average"
        lines.append(f"  {s['sequences']:,} sequences, {lengths} sample{'s' if high != 1 else ''}")
        lines.append(
            f"  {s['nonzero']:.2%} of the values are not zero; {s['min']:g} to {s['max']:g}, mean {s['mean']:.4g}"
        )
        if s["not_finite"]:
            lines.append(f"  {s['not_finite']:,} values are not finite!")
        if s["classes"]:
            counts = ", ".join(f"{c['class']}: {c['count']:,}" for c in s["classes"][:12])
            lines.append(f"  one class per sample: {counts}{', ...' if len(s['classes']) > 12 else ''}")
    for sequence in data["first"]:
        lines.append("")
        lines.append(f"sequence {sequence['key']}" if sequence["key"] is not None else "a sequence")
        for stream, samples in sequence["streams"].items():
            for number, sample in enumerate(samples):
                lines.append(f"  {stream + ':' if number == 0 else ' ' * (len(stream) + 1)} {sample}")
    if data["picture"]:
        without = f", without {', '.join(data['not_drawn'])}" if data["not_drawn"] else ""
        lines += ["", f"{data['picture']}: the first samples{without}"]
    return "\n".join(lines)
