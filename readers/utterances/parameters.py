"""Parameters that readers of speech have in common."""

from __future__ import annotations

from dataclasses import dataclass, field

from cntk_config.declare import SECTION, Declared, Parameter, Type
from cntk_config.parameters import ConfigParameters, ConfigValue

EVERYTHING = 2**62 - 1
"""randomize=auto."""


def _range(value: ConfigValue) -> int:
    word = value.strip().lower()
    return {"auto": EVERYTHING, "none": 0}[word] if word in ("auto", "none") else value.as_size()


def _window(value: ConfigValue) -> tuple[int, int]:
    sizes = list(value.as_array().convert(ConfigValue.as_size))
    if len(sizes) == 1 and sizes[0] % 2 == 0:
        raise value.error(
            "BadValue", f"a context window of {sizes[0]} frames is not symmetrical",
            "write an odd number, or left:right, the numbers of frames before and after",
        )  # fmt: skip
    if len(sizes) not in (1, 2) or sum(sizes) > 10000:
        raise value.error("BadValue", f"'{value}' is not a context window", "write an odd number, or left:right")
    return (sizes[0] // 2, sizes[0] // 2) if len(sizes) == 1 else (sizes[0], sizes[1])


WINDOW = Type("odd number of frames | left:right", _window)
FRAMES = Type("auto | none | size", _range)


@dataclass
class Sections:
    """Streams of a reader: name and section, in alphabetical order."""

    features: list[tuple[str, ConfigParameters]] = field(default_factory=list)
    labels: list[tuple[str, ConfigParameters]] = field(default_factory=list)


class OneStreamParameters(Declared):
    """A deserializer of a single stream."""

    input = Parameter("input", SECTION, help="One section for the stream, named after it.")

    def stream(self) -> tuple[str, ConfigParameters]:
        """Name and section of the stream."""
        names = self.input.names()
        if len(names) != 1:
            what = ", ".join(names) or "none"
            raise self.error(
                "input", f"this deserializer has one stream, not {len(names)} ({what})", "use one for each"
            )
        return names[0], self.input.section(names[0])
