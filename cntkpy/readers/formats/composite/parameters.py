"""The parameters of the composite reader."""

from __future__ import annotations

from cntkpy.cntk_config.declare import BOOLEAN, COUNT, INTEGER, SECTIONS, SIZE, TEXT, Parameter
from cntkpy.readers.entries import DESERIALIZER, NAMED_SEQUENCES, NEVER_FIRST, ONLY_FIRST
from cntkpy.readers.parameters import DeserializerParameters, OrderParameters, built_in, check_keys


class CompositeParameters(OrderParameters):
    """CompositeDataReader: reads streams of several deserializers, joined by sequence key."""

    deserializers = Parameter("deserializers", SECTIONS, help="Sections with `type`; the first decides the order.")
    truncated = Parameter("truncated", BOOLEAN, default="false", own=True, help="Cut sequences for truncated BPTT.")
    truncation_length = Parameter("truncationLength", COUNT, default="0", help="Steps of a piece of a sequence.")
    action = Parameter(
        "action", TEXT, default="", help="That of the command; `write`: whole sequences in the order of the data."
    )
    verbosity = Parameter("verbosity", INTEGER, default="0", ignored="losses are always reported.")
    trace_level = Parameter("traceLevel", TEXT, default=None, help="Handed to the deserializers.")
    local_timeline = Parameter("localTimeline", BOOLEAN, default="true", help="Each worker counts its own samples.")
    check_data = Parameter(
        "checkData", BOOLEAN, default="true", help="Leave out sequences missing somewhere; false: they are an error."
    )
    allow_loss = Parameter(
        "allowDataLoss", BOOLEAN, default="false", help="More than half of the sequences may be missing somewhere."
    )
    max_errors = Parameter("maxErrors", SIZE, default="0", own=True, help="Invalid sequences to leave out.")
    numeric_keys = Parameter(
        "useNumericSequenceKeys",
        BOOLEAN,
        default="true",
        help="Sequence ids are numbers; false: any text. By default false beside HTK deserializers.",
    )
    hash_keys = Parameter("hashSequenceKeys", BOOLEAN, default="false", help="Know text ids by a hash only.")

    def check_together(self) -> None:
        """Errors in what does not go together."""
        if self.truncated and self.frame_mode:
            message = "frameMode and truncated BPTT are mutually exclusive."
            raise self.error("truncated", message, "leave one of them out", "Conflict")
        if self.truncated and self.truncation_length == 0:
            raise self.error("truncated", "Truncation length cannot be 0.", "set truncationLength")
        if not self.deserializers:
            raise self.error("deserializers", "no deserializer is given", "write deserializers=([type=... ; ...])")
        if self.keys_are_numbers:
            check_keys(self)
        self._check_order()

    def _check_order(self) -> None:
        """See that the first deserializer can decide on chunks and order, and that no other one has to."""
        for number, deserializer in enumerate(self.deserializers):
            p = DeserializerParameters(deserializer)
            entry = built_in(DESERIALIZER, p.type, p.module)
            traits = entry.traits if entry is not None else frozenset[str]()
            if number == 0 and NEVER_FIRST in traits:
                message = f"{p.type} cannot be the first deserializer: it does not control chunks"
                raise p.error("type", message, "write the deserializer of the features before it", "BadOrder")
            if number and ONLY_FIRST in traits:
                message = f"{p.type} can only be the first deserializer: its sequences have no ids"
                raise p.error("type", message, "write it before the others", "BadOrder")

    @property
    def keys_are_numbers(self) -> bool:
        """`useNumericSequenceKeys`, by default false where there are utterances, which have names."""
        if self.given("useNumericSequenceKeys") is not None:
            return self.numeric_keys
        kinds = [
            built_in(
                DESERIALIZER,
                DeserializerParameters.type.read(deserializer),
                DeserializerParameters.module.read(deserializer),
            )
            for deserializer in self.deserializers
        ]
        return not any(kind is not None and NAMED_SEQUENCES in kind.traits for kind in kinds)
