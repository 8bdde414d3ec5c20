"""The parameters of transforms: declared and checked. Nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Iterator

from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    INTEGER,
    PATH,
    REAL,
    SIZE,
    TEXT,
    Declared,
    Parameter,
    Type,
    array,
    choice,
    per_epoch,
)
from cntkpy.cntk_config.parameters import ConfigValue
from cntkpy.readers.entries import TRANSFORM, names

RANDOM = ("randomside", "randomarea")
"""Kinds of Crop that draw the place."""
VIEWS = 10
INTERPOLATIONS = {
    "nearest": "INTER_NEAREST",
    "linear": "INTER_LINEAR",
    "cubic": "INTER_CUBIC",
    "lanczos": "INTER_LANCZOS4",
}
"""Words of configurations, and OpenCV's names."""
LARGEST = 1 << 15


def _range(value: ConfigValue) -> tuple[float, float]:
    numbers = list(value.as_array().convert(ConfigValue.as_double))
    if len(numbers) not in (1, 2):
        raise value.error("BadValue", f"'{value}' is not a number or a range", "write 0.8, or 0.6:0.9")
    low, high = numbers[0], numbers[-1]
    if not 0 <= low <= high < float("inf"):
        raise value.error("BadValue", f"'{value}' is not an ascending range of positive numbers", "write low:high")
    return low, high


def _size(value: ConfigValue) -> tuple[int, int]:
    sizes = list(value.as_array().convert(ConfigValue.as_size))
    if len(sizes) not in (1, 2) or (0 in sizes and any(sizes)):
        raise value.error("BadValue", f"'{value}' is not a size", "write width:height, or one number for a square")
    return sizes[0], sizes[-1]


RANGE = Type("number | low:high", _range)


class CropParameters(Declared):
    """Crop: cuts a part out of the picture."""

    crop_type = Parameter(
        "cropType",
        choice("center", "randomside", "randomarea", "random", "multiview10", ignore_case=True),
        default="center",
        help="Where the part lies; random is randomside.",
    )
    crop_size = Parameter(
        "cropSize", Type("width:height", _size), default="0", help="Size of the part; then the ratios do not count."
    )
    side_ratio = Parameter("sideRatio", RANGE, default="0", help="Side of a square to the shorter side; 0: all of it.")
    area_ratio = Parameter("areaRatio", RANGE, default="0", help="Area of a square to that of the picture; 0: all.")
    aspect_ratio = Parameter("aspectRatio", RANGE, default="1", help="Width to height, or height to width.")
    crop_ratio = Parameter("cropRatio", RANGE, default=None, help="Older name of sideRatio; cuts to whole pixels.")
    jitter = Parameter(
        "jitterType",
        choice("none", "uniRatio", "uniLength", "uniArea", ignore_case=True),
        default="none",
        help="uniRatio draws from ranges low:high; none takes low.",
    )
    flip = Parameter("hflip", BOOLEAN, default=None, help="Mirror every other picture; if absent, for random types.")
    aspect_radius = Parameter("aspectRatioRadius", array(REAL), default=None, help="Not supported; see aspectRatio.")
    seed = Parameter("seed", SIZE, default="0", help="Start of the random numbers.")

    @property
    def side(self) -> tuple[float, float]:
        """`sideRatio`, or its older name."""
        return self.side_ratio if self.crop_ratio is None else self.crop_ratio

    def check_together(self) -> None:
        """Ratios, and what older versions had and nobody used."""
        if any(self.aspect_radius or ()):
            raise self.error(
                "aspectRatioRadius",
                "is not supported",
                "write aspectRatio=low:high and jitterType=uniRatio",
                "NotSupported",
            )
        if self.jitter in ("uniLength", "uniArea"):
            raise self.error(
                "jitterType",
                f"'{self.jitter}' is not supported (nor did CNTK do anything for it)",
                "write jitterType=uniRatio",
                "NotSupported",
            )
        side = "sideRatio" if self.crop_ratio is None else "cropRatio"
        for name, (low, high) in ((side, self.side), ("areaRatio", self.area_ratio)):
            if (low == 0 and high > 0) or high > 1:
                raise self.error(name, "a ratio lies above 0 and is 1 at most", "write for instance 0.875, or 0.5:1")
        if self.side[0] and self.area_ratio[0]:
            raise self.error("areaRatio", "sideRatio and areaRatio exclude each other", "leave one of them out")
        if not self.aspect_ratio[0]:
            raise self.error("aspectRatio", "a ratio lies above 0", "write 1 for squares")


class ScaleParameters(Declared):
    """Scale: resizes pictures to one size."""

    to_width = Parameter("width", COUNT, help="Width of the result in pixels.")
    to_height = Parameter("height", COUNT, help="Height of the result in pixels.")
    channels = Parameter("channels", COUNT, help="3 for colour, 1 for grey.")
    interpolations = Parameter(
        "interpolations", choice(*INTERPOLATIONS, ignore_case=True), default="linear", help="How values are computed."
    )
    mode = Parameter(
        "scaleMode",
        choice("fill", "crop", "pad", ignore_case=True),
        default="fill",
        help="fill stretches; crop cuts what is too long; pad adds a border.",
    )
    pad = Parameter("padValue", INTEGER, default="-1", help="Value of the border; -1 repeats the edge.")

    def sample_size(self) -> int:
        """Values of a sample."""
        return self.to_width * self.to_height * self.channels

    def check_together(self) -> None:
        """Sizes within limits."""
        for name, size in (("width", self.to_width), ("height", self.to_height)):
            if not 0 < size <= LARGEST:
                raise self.error(name, f"{size} is not a size of pictures", f"write 1 to {LARGEST}")
        if self.channels not in (1, 3):
            raise self.error("channels", f"pictures have 3 channels, or 1, not {self.channels}")
        if not -1 <= self.pad <= 255:
            raise self.error("padValue", f"{self.pad} is not a value of pixels", "write 0 to 255, or -1")


class ColorParameters(Declared):
    """Color: changes brightness, contrast and saturation at random."""

    brightness = Parameter(
        "brightnessRadius", per_epoch(REAL), default="0", help="Greatest change, as a part of the mean value."
    )
    contrast = Parameter(
        "contrastRadius", per_epoch(REAL), default="0", help="Greatest change, as a part of the contrast."
    )
    saturation = Parameter(
        "saturationRadius", per_epoch(REAL), default="0", help="Greatest change, as a part of the saturation."
    )
    seed = CropParameters.seed

    def check_together(self) -> None:
        """Radii within limits."""
        names = ("brightnessRadius", "contrastRadius", "saturationRadius")
        for name, radii in zip(names, (self.brightness, self.contrast, self.saturation), strict=True):
            for radius in radii:
                if not 0 <= radius <= 1:
                    raise self.error(name, f"a radius lies between 0 and 1, not at {radius:g}")

    def idle(self) -> Iterator[tuple[str, str, str]]:
        """Yield a transform whose radii are all 0."""
        radii = (self.brightness, self.contrast, self.saturation)
        if self.given("type") is not None and not any(any(radius.distinct()) for radius in radii):
            yield "type", "changes nothing: every radius is 0", "write brightnessRadius=0.2, or leave the transform out"


class IntensityParameters(Declared):
    """Intensity: shifts colours at random along their main axes."""

    deviation = Parameter("intensityStdDev", per_epoch(REAL), default="0", help="Standard deviation of the shift.")
    intensity_file = Parameter(
        "intensityFile", PATH, default="", help="OpenCV XML file with EigVal (1 x 3), EigVec (3 x 3)."
    )
    seed = CropParameters.seed

    def check_together(self) -> None:
        """The deviation is one."""
        for deviation in self.deviation:
            if not 0 <= deviation < float("inf"):
                raise self.error("intensityStdDev", f"{deviation:g} is not a standard deviation", "write 0 or more")

    def idle(self) -> Iterator[tuple[str, str, str]]:
        """Yield a shift without its axes, or of no size."""
        shifts = any(self.deviation.distinct())
        place = next(filter(self.given, ("type", "intensityStdDev", "intensityFile")), None)
        if place is None or (shifts and self.intensity_file):
            return
        if not shifts and not self.intensity_file and place != "type":
            return  # both are given, and say that there is none
        hint = "write intensityStdDev=0.1" if self.intensity_file else "add intensityFile=FILE"
        yield place, "changes no colours: intensityFile and intensityStdDev above 0 are both needed", hint


class MeanParameters(Declared):
    """Mean: subtracts the mean picture, which is kept in a file."""

    mean_file = Parameter("meanFile", PATH, default="", help="OpenCV XML file; `cntkpy convert --mean` makes one.")

    def idle(self) -> Iterator[tuple[str, str, str]]:
        """Yield a transform without its picture."""
        if self.given("type") is not None and not self.mean_file:
            hint = "add meanFile=FILE; `cntkpy convert --mean` makes one"
            yield "type", "subtracts nothing: there is no meanFile", hint


class TransposeParameters(Declared):
    """Transpose: from one pixel after the other to one channel after the other (CHW, as convolutions want it)."""


class CastParameters(Declared):
    """Cast: converts values to float or double; the reader does so itself at the end."""

    precision = Parameter(
        "precision",
        choice("float", "double", ignore_case=True),
        default=None,
        own=True,
        help="float or double; if absent, as the reader.",
    )


class TransformTypeParameters(Declared):
    """Every transform: which one it is."""

    type = Parameter("type", choice(*names(TRANSFORM), ignore_case=True), own=True, help="Which transform it is.")
    module = Parameter("module", TEXT, default=None, own=True, ignored="transforms are built in.")
