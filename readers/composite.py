"""The composite reader: several deserializers joined by sequence key, one order, one packing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cntk_config.declare import BOOLEAN, INTEGER, SECTIONS, SIZE, TEXT, Parameter
from cntk_config.parameters import ConfigParameters

from .bundle import Bundle
from .corpus import Corpus
from .local_timeline import LocalTimeline, WindowedData, WindowStore
from .reader import Reader
from .registry import Setting, find_deserializer
from .sequences import Deserializer
from .source import Source
from .text_format.options import OrderParameters, check_precision, threads_for


class CompositeParameters(OrderParameters):
    """CompositeDataReader: reads streams of several deserializers, joined by sequence key."""

    deserializers = Parameter("deserializers", SECTIONS, help="Sections with `type`; the first decides the order.")
    truncated = Parameter("truncated", BOOLEAN, default="false", own=True, help="Cut sequences for truncated BPTT.")
    truncation_length = Parameter("truncationLength", SIZE, default="0", help="Steps of a piece of a sequence.")
    action = Parameter("action", TEXT, default="", own=True, help="`write` turns randomization off.")
    verbosity = Parameter("verbosity", INTEGER, default="0", help="1 tells about sequences that are left out.")
    trace_level = Parameter("traceLevel", TEXT, default=None, help="Handed to the deserializers.")
    local_timeline = Parameter("localTimeline", BOOLEAN, default="true", help="Each worker counts its own samples.")
    check_data = Parameter(
        "checkData", BOOLEAN, default="true", help="Leave out sequences missing somewhere; false: they are an error."
    )
    max_errors = Parameter("maxErrors", SIZE, default="0", own=True, help="Invalid sequences to leave out.")
    numeric_keys = Parameter(
        "useNumericSequenceKeys", BOOLEAN, default="true", help="Sequence ids are numbers; false: any text."
    )
    hash_keys = Parameter("hashSequenceKeys", BOOLEAN, default="false", help="Know text ids by a hash only.")


def join(parts: Sequence[Deserializer], *, verbosity: int = 0, check_data: bool = True) -> Deserializer:
    """One deserializer with the streams of all."""
    if len(parts) == 1:
        return parts[0]
    defining = [i for i, part in enumerate(parts) if getattr(part, "defines_mb_size", False)]
    return Bundle(
        parts, lengths_from=defining[0] if defining else None, verbosity=verbosity, check_data=check_data
    )  # fmt: skip


def create_composite_reader(section: ConfigParameters, precision: str) -> Reader:
    """CompositeDataReader."""
    p = CompositeParameters(section)
    truncated, frame_mode, length = p.truncated, p.frame_mode, p.truncation_length
    if truncated and frame_mode:
        raise p.error("truncated", "frameMode and truncated BPTT are mutually exclusive.", "leave one of them out")
    if truncated and length == 0:
        raise p.error("truncated", "Truncation length cannot be 0.", "set truncationLength")
    if p.hash_keys and p.numeric_keys:
        raise p.error(
            "hashSequenceKeys", "Hashing should not be used with numeric sequence keys.",
            "add useNumericSequenceKeys=false, or leave hashSequenceKeys out",
        )  # fmt: skip
    parts = _parts(p, check_precision(section, precision), frame_mode)
    if p.action.lower() == "write":
        section.insert("randomize", "false")
    options: dict[str, Any] = {
        "frame_mode": frame_mode,
        "truncation_length": length if truncated else 0,
        "local_timeline": p.local_timeline,
        "prefetch": p.prefetch,
        "max_errors": p.max_errors,
    }
    windowed = [part for part in parts if isinstance(part, WindowedData)]
    if windowed:
        if len(parts) > 1:
            raise p.error(
                "deserializers", "Currently composition for user defined deserializers is not supported.",
                "a deserializer written in Python on top of UserDeserializer has to be the only one",
            )  # fmt: skip
        return Reader(_windowed_source(p, windowed[0], options))
    if sum(bool(getattr(part, "defines_mb_size", False)) for part in parts) > 1:
        raise p.error("deserializers", "more than one deserializer has an input with definesMBSize")
    joined = join(parts, verbosity=p.verbosity, check_data=p.check_data)
    return Reader(Source(joined, p.timeline(joined), keep_in_memory=p.keep_in_memory, **options))


def _parts(p: CompositeParameters, precision: str, frame_mode: bool) -> list[Any]:
    """The deserializers."""
    sections = p.deserializers
    if not sections:
        raise p.error("deserializers", "no deserializer is given", "write deserializers=([type=... ; ...])")
    trace = str(p.trace_level) if p.trace_level is not None else None
    corpus = Corpus(p.numeric_keys, p.hash_keys)
    parts = []
    for i, one in enumerate(sections):
        setting = Setting(
            precision, primary=i == 0, frame_mode=frame_mode, trace_level=trace, corpus=corpus,
            threads=threads_for(p.threads),
        )  # fmt: skip
        parts.append(find_deserializer(one)()(one, setting))
    return parts


def _windowed_source(p: CompositeParameters, data: WindowedData, options: dict[str, Any]) -> Source:
    """A user's deserializer: its window is counted in chunks, 128 by default, or in samples if the section says so."""
    store = WindowStore(data)
    samples = p.given("sampleBasedRandomizationWindow") is not None and p.sample_window
    window = 128 if p.window is None else p.window
    timeline = LocalTimeline(
        store, randomize=p.randomize and window > 0, window=window, in_samples=samples, seed=p.seed
    )
    return Source(data, timeline, store=store, **(options | {"local_timeline": True}))
