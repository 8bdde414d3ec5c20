"""The arguments of a `MinibatchSource`, checked, and the pipeline that they describe."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cntkpy.cntk_config.base.diagnostics import ConfigError, suggestion
from cntkpy.cntk_config.base.narrowing import is_dict, is_several
from cntkpy.readers.common.arguments import whole_number
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.threads import threads_for
from cntkpy.readers.contracts import DefinesLength, Deserializer
from cntkpy.readers.entries import find_entry
from cntkpy.readers.errors import ArgumentError, DataError
from cntkpy.readers.formats.composite.reader import join
from cntkpy.readers.formats.image.source import source_of
from cntkpy.readers.pipeline.local_timeline import EpochEnd, LocalTimeline
from cntkpy.readers.pipeline.randomize import BlockRandomizer, NoRandomizer, chunks_in_memory
from cntkpy.readers.pipeline.source import Source, SourceOptions
from cntkpy.readers.pipeline.window_store import WindowStore
from cntkpy.readers.registry import DESERIALIZER, Setting, find_deserializer
from cntkpy.readers.user.deserializer import UserData, UserDeserializer
from cntkpy.readers.user.indexed import IndexedUserData

from .base import DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS, FULL_DATA_SWEEP, INFINITELY_REPEAT
from .factories import Config, to_section

log = logging.getLogger("cntkpy.readers")

IMAGES = {"ImageDeserializer", "Base64ImageDeserializer"}
UTTERANCES = {
    "HTKFeatureDeserializer",
    "HTKMLFDeserializer",
    "KaldiFeatureDeserializer",
    "KaldiLabelDeserializer",
}
TOO_BIG = "Too big epoch size can cause bit overflow"


@dataclass(frozen=True)
class SourceArguments:
    """Arguments of a `MinibatchSource`.

    Attributes:
        parts: Deserializers: dictionaries, and objects of programs.
        max_samples: Samples after which the data end; None: not by their number.
        max_sweeps: Sweeps after which they end.
        randomize: Whether data are shuffled.
        window: Chunks or samples that are shuffled together.
        in_chunks: Whether the window is counted in chunks.
        seed: Added to the number of the sweep.
        trace_level: Verbosity of the log.
        threads: Whether all cores read.
        frame_mode: Whether every sequence is one sample.
        truncation_length: Steps of the pieces that sequences are cut into; 0: whole sequences.
        max_errors: Invalid sequences that are left out.
    """

    parts: list[Any]
    max_samples: int | None
    max_sweeps: int | None
    randomize: bool
    window: int
    in_chunks: bool
    seed: int
    trace_level: int
    threads: bool
    frame_mode: bool
    truncation_length: int
    max_errors: int

    @property
    def config(self) -> Config:
        """The source as CNTK's dictionary."""
        config: Config = {
            "frameMode": self.frame_mode,
            "multiThreadedDeserialization": self.threads,
            "traceLevel": self.trace_level,
            "randomize": self.randomize,
            "deserializers": self.parts,
        }
        if self.randomize:
            config |= {
                "randomizationWindow": self.window,
                "sampleBasedRandomizationWindow": not self.in_chunks,
                "randomizationSeed": self.seed,
            }
        if self.truncation_length:
            config |= {"truncated": True, "truncationLength": self.truncation_length}
        return config

    def limit(self, sweep: int | None) -> int | None:
        """Return the number of samples before the end of the data; None if there is no end or it is unknown.

        Args:
            sweep: Samples of a sweep; None: these are not known.
        """
        if self.max_sweeps is not None:
            return None if sweep is None else self.max_sweeps * sweep
        return self.max_samples


def checked(arguments: Mapping[str, Any]) -> SourceArguments:
    """Return the arguments of a `MinibatchSource`.

    Args:
        arguments: By name, as a program gives them.

    Raises:
        ArgumentError: An argument is of another type or out of range.
        DataError: Arguments exclude each other.
    """
    parts = _flatten(arguments["deserializers"])
    names = (
        "max_samples", "max_sweeps", "randomization_window_in_chunks", "randomization_window_in_samples",
        "randomization_seed", "truncation_length", "max_errors", "trace_level",
    )  # fmt: skip
    numbers = {name: whole_number(arguments[name], name) for name in names}
    max_samples, max_sweeps = numbers["max_samples"], numbers["max_sweeps"]
    chunks, samples = numbers["randomization_window_in_chunks"], numbers["randomization_window_in_samples"]
    frame_mode, threads = arguments["frame_mode"], arguments["multithreaded_deserializer"]
    if max_samples != INFINITELY_REPEAT and max_sweeps != INFINITELY_REPEAT:
        raise DataError("max_samples and max_sweeps are mutually exclusive: give one of them.")
    if chunks and samples:
        raise DataError("The randomization windows in chunks and in samples are mutually exclusive: set one to 0.")
    if frame_mode and numbers["truncation_length"]:
        raise DataError("frame_mode and truncation_length are mutually exclusive: give one of them.")
    if max_samples == FULL_DATA_SWEEP:
        max_samples, max_sweeps = INFINITELY_REPEAT, 1
    if max_samples != INFINITELY_REPEAT and max_samples > 2**63 - 1:
        raise ArgumentError(TOO_BIG)
    for name in ("randomize", "frame_mode", "multithreaded_deserializer"):
        if arguments[name] not in (None, False, True):
            raise ArgumentError(f"{name} is True or False, not {arguments[name]!r}")
    if threads is None:
        threads = any(kind in IMAGES for kind in _kinds(parts))
    window = chunks or samples
    return SourceArguments(
        parts,
        max_samples=None if max_samples == INFINITELY_REPEAT else max_samples,
        max_sweeps=None if max_sweeps == INFINITELY_REPEAT else max_sweeps,
        randomize=bool(arguments["randomize"]) and window > 0,
        window=window,
        in_chunks=bool(chunks),
        seed=numbers["randomization_seed"],
        trace_level=int(numbers["trace_level"]),
        threads=bool(threads),
        frame_mode=frame_mode,
        truncation_length=numbers["truncation_length"],
        max_errors=numbers["max_errors"],
    )


def source_from(p: SourceArguments) -> Source:
    """Return the pipeline of some arguments."""
    options = SourceOptions(
        frame_mode=p.frame_mode,
        truncation_length=p.truncation_length,
        local_timeline=True,
        max_errors=p.max_errors,
    )
    if len(p.parts) == 1 and isinstance(p.parts[0], UserDeserializer):
        data = UserData(p.parts[0])
        store = WindowStore(data)
        end = EpochEnd(p.max_samples, p.max_sweeps)
        order = LocalTimeline(
            store, randomize=p.randomize, window=p.window, in_samples=not p.in_chunks, seed=p.seed, end=end
        )
        return Source(data, order, options, store=store)
    threads = threads_for(p.threads)
    joined = _joined(p, threads)
    window = _window(p.window, p.window if p.in_chunks and p.randomize else 0, joined)
    timeline = (
        BlockRandomizer(joined.table, window, in_chunks=p.in_chunks, seed=p.seed, cross_sweeps=True)
        if p.randomize
        else NoRandomizer(joined.table, cross_sweeps=True, cuts_at_epoch_end=True)
    )
    limit = p.limit(joined.table.num_samples)
    if limit is not None:
        if limit > 2**63 - 1:
            raise ArgumentError(TOO_BIG)
        timeline.epoch_end = limit
    return source_of(joined, timeline, replace(options, threads=threads))


def sweep_of(source: Source) -> int | None:
    """Return the samples of a sweep, where they are known beforehand."""
    return None if isinstance(source.timeline, LocalTimeline) else source.samples_per_sweep


def _kinds(parts: Sequence[Any]) -> set[str]:
    """Return the types of those that are described by dictionaries."""
    return {part["type"] for part in parts if is_dict(part)}


def _flatten(deserializers: Any) -> list[Any]:
    result = deserializers if is_several(deserializers) else [deserializers]
    parts = [deserializer for part in result for deserializer in (part if is_several(part) else [part])]
    if not parts:
        raise ArgumentError("at least one deserializer is needed")
    for part in parts:
        if isinstance(part, type):
            raise ArgumentError(f"{part.__name__} is a class, not a deserializer", f"write {part.__name__}(...)")
        if not isinstance(part, dict | UserDeserializer):
            raise ArgumentError(
                f"{type(part).__name__} is not a deserializer: use CTFDeserializer(...) or a UserDeserializer"
            )
        if is_dict(part) and not isinstance(part.get("type"), str):
            raise ArgumentError("a deserializer given as a dictionary must have a 'type'", "CTFDeserializer makes one")
    return parts


def _window(window: int, chunks: int, data: Deserializer) -> int:
    """Return the window of a shuffled order: smaller than the default where that does not stay in memory.

    Args:
        window: the window that was asked for.
        chunks: the same, if it is counted in chunks; 0 else.
        data: what is read.
    """
    default = chunks == DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS
    return min(window, chunks_in_memory(data) or window) if default else window


def _warn_of_unknown(part: Config) -> None:
    """Log keys that a program has added to the dictionary of a deserializer and that nothing reads."""
    kind = str(part.get("type", ""))
    entry = find_entry(DESERIALIZER, kind)
    declared = entry.declared() if entry is not None and not entry.open else None
    if declared is None:
        return
    known = ["type", "module", *(name for p in declared.parameters() for name in (p.name, *p.aliases))]
    for key in part.keys() - known:
        if key.lower() not in map(str.lower, known):
            hint = suggestion(key, known)
            log.warning("%s: nothing reads '%s'%s", kind, key, f" - {hint}" if hint else ".")


def _joined(p: SourceArguments, threads: int) -> Deserializer:
    """Return one deserializer out of those of users, and of dictionaries that describe others."""
    setting = Setting(
        frame_mode=p.frame_mode,
        trace_level=str(p.trace_level),
        corpus=Corpus(not _kinds(p.parts) & UTTERANCES),
        threads=threads,
    )
    made: list[Any] = []
    try:
        for i, part in enumerate(p.parts):
            if isinstance(part, UserDeserializer):
                made.append(IndexedUserData(UserData(part)))
                continue
            _warn_of_unknown(part)
            section = to_section({"maxErrors": p.max_errors} | part)
            made.append(find_deserializer(section)()(section, setting._replace(primary=i == 0)))
        if sum(isinstance(value, DefinesLength) and bool(value.defines_mb_size) for value in made) > 1:
            raise ArgumentError("more than one deserializer has a stream with defines_mb_size")
        return join(made)
    except ConfigError as error:
        raise ArgumentError(error.message, error.hint, error.notes, kind=error.kind) from error
