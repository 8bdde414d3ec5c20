"""The composite reader: several deserializers joined by sequence key, one order, one packing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.threads import threads_for
from cntkpy.readers.contracts import DefinesLength, Deserializer, FrameData
from cntkpy.readers.formats.composite.parameters import CompositeParameters
from cntkpy.readers.formats.image.source import pictures_in, source_of
from cntkpy.readers.parameters import check_precision
from cntkpy.readers.pipeline.bundle import Bundle
from cntkpy.readers.pipeline.local_timeline import LocalTimeline
from cntkpy.readers.pipeline.source import Source, SourceOptions
from cntkpy.readers.pipeline.window_store import WindowedData, WindowStore
from cntkpy.readers.reader import Reader
from cntkpy.readers.registry import Setting, find_deserializer
from cntkpy.readers.user.deserializer import UserData
from cntkpy.readers.user.indexed import IndexedUserData


def join(parts: Sequence[Deserializer], *, check_data: bool = True, allow_loss: bool = False) -> Deserializer:
    """Return one deserializer with the streams of all."""
    if len(parts) == 1:
        return parts[0]
    if any(isinstance(part, FrameData) for part in parts):
        from cntkpy.readers.utterances.side_by_side import frames_or_sequences, join_frames

        parts = frames_or_sequences(parts)
        if (frames := join_frames(parts, check_data=check_data, allow_loss=allow_loss)) is not None:
            return frames
    defining = [i for i, part in enumerate(parts) if _defines_length(part)]
    lengths_from = defining[0] if defining else None
    return Bundle(parts, lengths_from=lengths_from, check_data=check_data, allow_loss=allow_loss)


def _defines_length(part: object) -> bool:
    """Return whether the samples of a deserializer are the lengths of sequences."""
    return isinstance(part, DefinesLength) and bool(part.defines_mb_size)


def create_composite_reader(section: ConfigParameters, precision: str) -> Reader:
    """CompositeDataReader."""
    p = CompositeParameters(section)
    p.check_together()
    truncated, frame_mode, length = p.truncated, p.frame_mode, p.truncation_length
    if p.action.lower() == "write":
        truncated = frame_mode = False
        section.insert(CompositeParameters.randomize.name, "false")
    parts = _parts(p, check_precision(section, precision), frame_mode)
    options = SourceOptions(
        frame_mode=frame_mode,
        truncation_length=length if truncated else 0,
        local_timeline=p.local_timeline,
        prefetch=p.prefetch,
        threads=threads_for(p.threads),
        max_errors=p.max_errors,
    )
    if len(parts) == 1 and isinstance(parts[0], WindowedData):
        return Reader(_windowed_source(p, parts[0], options))
    parts = [IndexedUserData(part) if isinstance(part, UserData) else part for part in parts]
    if sum(map(_defines_length, parts)) > 1:
        raise p.error("deserializers", "more than one deserializer has an input with definesMBSize")
    joined = join(parts, check_data=p.check_data, allow_loss=p.allow_loss)
    if pictures_in(joined):
        options = _adapted_to_pictures(p, joined, options)
    return Reader(source_of(joined, p.timeline(joined), replace(options, keep_in_memory=p.keep_in_memory)))


def _adapted_to_pictures(p: CompositeParameters, joined: Deserializer, options: SourceOptions) -> SourceOptions:
    """Return options whose defaults are others if there are pictures; a map file alone is shuffled by pictures."""
    if p.truncated:
        raise p.error("truncated", "pictures cannot be cut into pieces of sequences", "leave truncated out")
    if p.window is None and not isinstance(joined, Bundle) and joined.table.num_chunks == joined.table.num_sequences:
        p.config.insert(CompositeParameters.window.name, "1")
    decides = p.given("multiThreadedDeserialization") is not None
    return options if decides else replace(options, threads=threads_for(True))


def _parts(p: CompositeParameters, precision: str, frame_mode: bool) -> list[Any]:
    """Return the deserializers."""
    sections = p.deserializers
    trace = str(p.trace_level) if p.trace_level is not None else None
    corpus = Corpus(p.keys_are_numbers, p.hash_keys)
    parts: list[Any] = []
    for i, section in enumerate(sections):
        setting = Setting(
            precision,
            primary=i == 0,
            frame_mode=frame_mode,
            trace_level=trace,
            corpus=corpus,
            threads=threads_for(p.threads),
            max_errors=p.given("maxErrors"),
            alone=len(sections) == 1,
        )
        parts.append(find_deserializer(section)()(section, setting))
    return parts


def _windowed_source(p: CompositeParameters, data: WindowedData, options: SourceOptions) -> Source:
    """Return a user's deserializer: its window is counted in chunks, 128 by default, or in samples if the section says
    so.
    """
    store = WindowStore(data)
    samples = p.given("sampleBasedRandomizationWindow") is not None and p.sample_window
    window = 128 if p.window is None else p.window
    timeline = LocalTimeline(
        store, randomize=p.randomize and window > 0, window=window, in_samples=samples, seed=p.seed
    )
    return Source(data, timeline, replace(options, local_timeline=True), store=store)
