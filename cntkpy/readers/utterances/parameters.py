"""Parameters that readers of speech have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.cntk_config.declare import BOOLEAN, COUNT, PATH, SECTION, TEXT, Declared, Parameter, Type, per_epoch
from cntkpy.cntk_config.parameters import ConfigParameters, ConfigValue
from cntkpy.readers.parameters import LABEL_TYPE, MINIBATCH_MODE

if TYPE_CHECKING:
    import numpy as np

    from cntkpy.readers.common.labels import LabelMap

EVERYTHING = 2**62 - 1
"""randomize=auto."""


def _range(value: ConfigValue) -> int:
    word = value.strip().lower()
    return {"auto": EVERYTHING, "none": 0}[word] if word in ("auto", "none") else value.as_size()


def _window(value: ConfigValue) -> tuple[int, int]:
    sizes = list(value.as_array().convert(ConfigValue.as_size))
    if len(sizes) == 1 and sizes[0] % 2 == 0:
        raise value.error(
            "BadValue",
            f"a context window of {sizes[0]} frames is not symmetrical",
            "write an odd number, or left:right, the numbers of frames before and after",
        )
    if len(sizes) not in (1, 2) or sum(sizes) > 10000:
        raise value.error("BadValue", f"'{value}' is not a context window", "write an odd number, or left:right")
    return (sizes[0] // 2, sizes[0] // 2) if len(sizes) == 1 else (sizes[0], sizes[1])


def window_advice(wanted: int, value: ConfigValue | None, message: str | None = None) -> str | None:
    """Return a hint for a context window that was meant as frames on each side, for samples of `wanted` elements.

    Args:
        wanted: elements of a sample.
        value: the window that is given, which counts all frames; CNTK's manual counts those on each side.
        message: what a file says of the values of its frames, if that is known.
    """
    if value is None or not value.strip().isdigit():
        return None
    side = int(value)
    width = 2 * side + 1
    values = f"{wanted // width} values"
    if wanted % width or (message is not None and f" has {values}" not in message):
        return None
    window = f"contextWindow={side}:{side}, or {width}"
    return f"for {side} frames of {values} on each side write dim={wanted // width} and {window}"


WINDOW = Type("odd number of frames | left:right", _window)
FRAMES = Type("auto | none | size", _range)


@dataclass
class Sections:
    """Streams of a reader: name and section, in alphabetical order."""

    features: list[tuple[str, ConfigParameters]] = field(default_factory=list["tuple[str, ConfigParameters]"])
    labels: list[tuple[str, ConfigParameters]] = field(default_factory=list["tuple[str, ConfigParameters]"])


class OneStreamParameters(Declared):
    """A deserializer of a single stream."""

    input = Parameter("input", SECTION, help="One section for the stream, named after it.")

    def stream(self) -> tuple[str, ConfigParameters]:
        """Name and section of the stream."""
        names = self.input.names()
        if len(names) != 1:
            names_text = ", ".join(names) or "none"
            raise self.error(
                "input", f"this deserializer has one stream, not {len(names)} ({names_text})", "use one for each"
            )
        return names[0], self.input.section(names[0])


class UtteranceReaderParameters(Declared):
    """Readers of utterances: in which order they come, and what a minibatch is made of."""

    randomize = Parameter(
        "randomize",
        FRAMES,
        default="auto",
        help="Frames that are shuffled among each other: auto, all; none; or a number.",
    )
    frame_mode = Parameter("frameMode", BOOLEAN, default="true", help="Single frames instead of whole utterances.")
    truncated = Parameter("truncated", BOOLEAN, default="false", help="Truncated BPTT, minibatchSize steps at a time.")
    parallel = Parameter(
        "nbruttsineachrecurrentiter", per_epoch(COUNT), default="1", help="Utterances side by side, per epoch."
    )
    minibatch_mode = MINIBATCH_MODE
    longest = Parameter("maxUtteranceLength", COUNT, default="10000", help="Longer utterances are left out.")
    twister = Parameter(
        "useMersenneTwisterRand", BOOLEAN, default="false", help="Shuffle with it; false: with the rand of C."
    )
    action = Parameter("action", TEXT, default="", help="`write`: utterances one by one in the order of their list.")
    legacy = Parameter("legacyMode", TEXT, default=None, own=True, help="No longer there.")
    prefetch = Parameter("prefetch", BOOLEAN, default="true", help="Read ahead on a background thread.")

    @property
    def writing(self) -> bool:
        """True if utterances are read for action=write."""
        return self.action.lower() == "write"

    def reads_frames(self, method: str) -> bool:
        """Return whether minibatches consist of frames, with this readMethod: rollingWindow is always by frames."""
        return not self.writing and (self.frame_mode or method == "rollingWindow")

    @property
    def slots(self) -> PerEpoch[int]:
        """Parallel utterances per epoch."""
        return self.parallel

    def check_legacy(self) -> None:
        """An error in the form that CNTK had given up."""
        if self.legacy is not None:
            raise self.error("legacyMode", "is no longer supported", "leave it out")

    def check_minibatches(self) -> None:
        """Errors in what does not go together in a minibatch."""
        if self.frame_mode and self.truncated:
            raise self.error("truncated", "frameMode and truncated BPTT are mutually exclusive.", "set frameMode=false")
        if any(slots < 1 for slots in self.parallel):
            raise self.error("nbruttsineachrecurrentiter", "there must be at least one utterance")


class UtteranceLabelParameters(Declared):
    """A stream of labels: classes of frames."""

    label_dim = Parameter("labelDim", COUNT, default=None, help="Number of classes.")
    dim = Parameter("dim", COUNT, default=None, help="Number of classes, if labelDim is absent.")
    label_type = Parameter("labelType", LABEL_TYPE, default=None, help="Kind of labels.")
    kind = Parameter("type", LABEL_TYPE, default="category", own=True, help="The same as labelType.")
    targets = Parameter(
        "labelToTargetMappingFile",
        PATH,
        default="",
        help="For each state of labelMappingFile, in its order, a line: the name, a blank, zeros and ones.",
    )
    target_dim = Parameter("targetDim", COUNT, default=None, help="Length of these rows.")

    def classes(self) -> int:
        """Return the number of classes."""
        dim = self.label_dim if self.label_dim is not None else self.dim
        if dim is None:
            raise self.error("labelDim", "the number of classes is missing", "add labelDim=...", "MissingParameter")
        if not 0 < dim <= 65535:
            raise self.error("labelDim", f"{dim} is not a number of classes", "write 1 to 65535")
        return dim

    def check_type(self) -> None:
        """Labels are categories."""
        _ = self.label_type, self.kind  # there are no others

    def target_table(self, states: LabelMap | None) -> np.ndarray | None:
        """Return the vectors that stand for classes, if there are such: float32 (classes, targetDim)."""
        from .labels import read_targets

        if not self.targets:
            return None
        if self.target_dim is None:
            raise self.error(
                "targetDim", "the length of the targets is missing", "add targetDim=...", "MissingParameter"
            )
        if states is None:
            raise self.error("labelToTargetMappingFile", "needs a state list", "add labelMappingFile=...")
        return read_targets(str(self.targets), states, self.target_dim)

    def sample_size(self) -> int | None:
        """Elements of a sample."""
        return self.target_dim if self.targets else self.label_dim if self.label_dim is not None else self.dim
