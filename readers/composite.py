"""The composite reader: several deserializers joined by sequence key, one order, one packing."""

from __future__ import annotations

from cntk_config.declare import BOOLEAN, INTEGER, SECTIONS, SIZE, TEXT, Parameter
from cntk_config.parameters import ConfigParameters

from .bundle import Bundle
from .reader import Reader
from .registry import Setting, find_deserializer
from .sequences import Deserializer
from .source import Source
from .text_format.options import OrderParameters, check_precision


class CompositeParameters(OrderParameters):
    """CompositeDataReader: reads streams of several deserializers, joined by sequence key."""

    deserializers = Parameter("deserializers", SECTIONS, help="Sections with `type`; the first decides the order.")
    truncated = Parameter("truncated", BOOLEAN, default="false", own=True, help="Cut sequences for truncated BPTT.")
    truncation_length = Parameter("truncationLength", SIZE, default="0", help="Steps of a piece of a sequence.")
    action = Parameter("action", TEXT, default="", own=True, help="`write` turns randomization off.")
    verbosity = Parameter("verbosity", INTEGER, default="0", help="1 tells about sequences that are left out.")
    trace_level = Parameter("traceLevel", TEXT, default=None, help="Handed to the deserializers.")
    local_timeline = Parameter("localTimeline", BOOLEAN, default="true", help="Each worker counts its own samples.")
    threads = Parameter("multiThreadedDeserialization", BOOLEAN, default="false", help="Decode in parallel.")
    check_data = Parameter("checkData", BOOLEAN, default="true", help="Leave out sequences missing somewhere.")


def create_composite_reader(section: ConfigParameters, precision: str) -> Reader:
    """CompositeDataReader."""
    p = CompositeParameters(section)
    truncated, frame_mode, length = p.truncated, p.frame_mode, p.truncation_length
    if truncated and frame_mode:
        raise p.error("truncated", "frameMode and truncated BPTT are mutually exclusive.", "leave one of them out")
    if truncated and length == 0:
        raise p.error("truncated", "Truncation length cannot be 0.", "set truncationLength")
    sections = p.deserializers
    if not sections:
        raise p.error("deserializers", "no deserializer is given", "write deserializers=([type=... ; ...])")
    precision = check_precision(section, precision)
    trace = str(p.trace_level) if p.trace_level is not None else None
    parts: list[Deserializer] = []
    for i, one in enumerate(sections):
        setting = Setting(precision, primary=i == 0, frame_mode=frame_mode, trace_level=trace)
        parts.append(find_deserializer(one)()(one, setting))
    defining = [i for i, part in enumerate(parts) if getattr(part, "defines_mb_size", False)]
    if len(defining) > 1:
        raise p.error("deserializers", "more than one deserializer has an input with definesMBSize")
    joined = parts[0]
    if len(parts) > 1:
        joined = Bundle(parts, lengths_from=defining[0] if defining else None, verbosity=p.verbosity)
    if p.action.lower() == "write":
        section.insert("randomize", "false")
    return Reader(
        Source(
            joined,
            p.timeline(joined),
            frame_mode=frame_mode,
            truncation_length=length if truncated else 0,
            local_timeline=p.local_timeline,
            keep_in_memory=p.keep_in_memory,
            prefetch=p.prefetch,
        )
    )
