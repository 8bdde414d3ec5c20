"""The parameters of transforms: declared, checked, and made into transforms. Nothing heavy is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntk_config.declare import BOOLEAN, INTEGER, PATH, REAL, SIZE, TEXT, Declared, Parameter, Type, array, choice
from cntk_config.parameters import ConfigValue

if TYPE_CHECKING:
    import numpy as np

    from .transform import Transform

RANDOM = ("randomside", "randomarea")
"""Kinds of Crop that draw the place."""
VIEWS = 10
INTERPOLATIONS = {
    "nearest": "INTER_NEAREST", "linear": "INTER_LINEAR", "cubic": "INTER_CUBIC", "lanczos": "INTER_LANCZOS4",
}  # fmt: skip
"""Words of configurations, and OpenCV's names."""
LARGEST = 1 << 15


def _range(value: ConfigValue) -> tuple[float, float]:
    found = list(value.as_array().convert(ConfigValue.as_double))
    if len(found) not in (1, 2):
        raise value.error("BadValue", f"'{value}' is not a number or a range", "write 0.8, or 0.6:0.9")
    low, high = found[0], found[-1]
    if not 0 <= low <= high < float("inf"):
        raise value.error("BadValue", f"'{value}' is not an ascending range of positive numbers", "write low:high")
    return low, high


def _size(value: ConfigValue) -> tuple[int, int]:
    sizes = list(value.as_array().convert(ConfigValue.as_size))
    if len(sizes) not in (1, 2) or (0 in sizes and any(sizes)):
        raise value.error("BadValue", f"'{value}' is not a size", "write width:height, or one number for a square")
    return sizes[0], sizes[-1]


RANGE = Type("number | low:high", _range)


class TransformParameters(Declared):
    """A transform as a section declares it."""

    def make(self, dtype: np.dtype, channels: int) -> Transform | None:
        """The transform, for pictures of so many channels and a reader whose values have this type; None for none."""
        raise NotImplementedError


class CropParameters(TransformParameters):
    """Crop: cuts a part out of the picture."""

    crop_type = Parameter(
        "cropType", choice("center", "randomside", "randomarea", "random", "multiview10", ignore_case=True),
        default="center", help="Where the part lies; random is randomside.",
    )  # fmt: skip
    crop_size = Parameter(
        "cropSize", Type("width:height", _size), default="0", help="Size of the part; then the ratios do not count."
    )
    side_ratio = Parameter("sideRatio", RANGE, default="0", help="Side of a square to the shorter side; 0: all of it.")
    area_ratio = Parameter("areaRatio", RANGE, default="0", help="Area of a square to that of the picture; 0: all.")
    aspect_ratio = Parameter("aspectRatio", RANGE, default="1", help="Width to height, or height to width.")
    crop_ratio = Parameter("cropRatio", RANGE, default=None, help="Older name of sideRatio; cuts to whole pixels.")
    jitter = Parameter(
        "jitterType", choice("none", "uniRatio", "uniLength", "uniArea", ignore_case=True), default="none",
        help="uniRatio draws from ranges low:high; none takes low.",
    )  # fmt: skip
    flip = Parameter("hflip", BOOLEAN, default=None, help="Mirror every other picture; if absent, for random types.")
    aspect_radius = Parameter("aspectRatioRadius", array(REAL), default=None, help="Not supported; see aspectRatio.")
    seed = Parameter("seed", SIZE, default="0", help="Start of the random numbers.")

    def make(self, dtype: np.dtype, channels: int) -> Transform | None:
        """The transform."""
        from .crop import Crop

        kind = {"random": "randomside"}.get(self.crop_type, self.crop_type)
        self.check_together()
        flip = kind in RANDOM if self.flip is None else self.flip
        return Crop(
            kind, self.crop_size, self._side, self.area_ratio, self.aspect_ratio, self.jitter == "uniRatio",
            flip and kind != "multiview10", self.crop_ratio is not None, self.seed,
        )  # fmt: skip

    @property
    def _side(self) -> tuple[float, float]:
        return self.side_ratio if self.crop_ratio is None else self.crop_ratio

    def check_together(self) -> None:
        """Ratios, and what older versions had and nobody used."""
        if any(self.aspect_radius or ()):
            raise self.error(
                "aspectRatioRadius", "is not supported", "write aspectRatio=low:high and jitterType=uniRatio",
                "NotSupported",
            )  # fmt: skip
        if self.jitter in ("uniLength", "uniArea"):
            raise self.error(
                "jitterType", f"'{self.jitter}' is not supported (nor did the original do anything for it)",
                "write jitterType=uniRatio", "NotSupported",
            )  # fmt: skip
        side = "sideRatio" if self.crop_ratio is None else "cropRatio"
        for name, (low, high) in ((side, self._side), ("areaRatio", self.area_ratio)):
            if (low == 0 and high > 0) or high > 1:
                raise self.error(name, "a ratio lies above 0 and is 1 at most", "write for instance 0.875, or 0.5:1")
        if self._side[0] and self.area_ratio[0]:
            raise self.error("areaRatio", "sideRatio and areaRatio exclude each other", "leave one of them out")
        if not self.aspect_ratio[0]:
            raise self.error("aspectRatio", "a ratio lies above 0", "write 1 for squares")


class ScaleParameters(TransformParameters):
    """Scale: resizes pictures to one size."""

    to_width = Parameter("width", SIZE, help="Width of the result in pixels.")
    to_height = Parameter("height", SIZE, help="Height of the result in pixels.")
    channels = Parameter("channels", SIZE, help="3 for colour, 1 for grey.")
    interpolations = Parameter(
        "interpolations", choice(*INTERPOLATIONS, ignore_case=True), default="linear", help="How values are computed."
    )
    mode = Parameter(
        "scaleMode", choice("fill", "crop", "pad", ignore_case=True), default="fill",
        help="fill stretches; crop cuts what is too long; pad adds a border.",
    )  # fmt: skip
    pad = Parameter("padValue", INTEGER, default="-1", help="Value of the border; -1 repeats the edge.")

    def sample_size(self) -> int:
        """Values of a sample."""
        return self.to_width * self.to_height * self.channels

    def make(self, dtype: np.dtype, channels: int) -> Transform | None:
        """The transform."""
        from .scale import Scale

        self.check_together()
        if self.channels != channels:
            raise self.error(
                "channels", f"is {self.channels}, but pictures are read with {channels}",
                "add grayscale=true to the deserializer" if channels == 3 else "write channels=1, or grayscale=false",
            )  # fmt: skip
        return Scale(self.to_width, self.to_height, self.interpolations, self.mode, self.pad)

    def check_together(self) -> None:
        """Sizes within limits."""
        for name, size in (("width", self.to_width), ("height", self.to_height)):
            if not 0 < size <= LARGEST:
                raise self.error(name, f"{size} is not a size of pictures", f"write 1 to {LARGEST}")
        if self.channels not in (1, 3):
            raise self.error("channels", f"pictures have 3 channels, or 1, not {self.channels}")
        if not -1 <= self.pad <= 255:
            raise self.error("padValue", f"{self.pad} is not a value of pixels", "write 0 to 255, or -1")


class ColorParameters(TransformParameters):
    """Color: changes brightness, contrast and saturation at random."""

    brightness = Parameter("brightnessRadius", REAL, default="0", help="Greatest change, as a part of the mean value.")
    contrast = Parameter("contrastRadius", REAL, default="0", help="Greatest change, as a part of the contrast.")
    saturation = Parameter("saturationRadius", REAL, default="0", help="Greatest change, as a part of the saturation.")
    seed = CropParameters.seed

    def make(self, dtype: np.dtype, channels: int) -> Transform | None:
        """The transform."""
        from .color import Color

        self.check_together()
        return Color(self.brightness, self.contrast, self.saturation, self.seed)

    def check_together(self) -> None:
        """Radii within limits."""
        names = ("brightnessRadius", "contrastRadius", "saturationRadius")
        for name, radius in zip(names, (self.brightness, self.contrast, self.saturation), strict=True):
            if not 0 <= radius <= 1:
                raise self.error(name, f"a radius lies between 0 and 1, not at {radius:g}")


class IntensityParameters(TransformParameters):
    """Intensity: shifts colours at random along their main axes."""

    deviation = Parameter("intensityStdDev", REAL, default="0", help="Standard deviation of the shift.")
    intensity_file = Parameter(
        "intensityFile", PATH, default="", help="OpenCV XML file with EigVal (1 x 3), EigVec (3 x 3)."
    )
    seed = CropParameters.seed

    def make(self, dtype: np.dtype, channels: int) -> Transform | None:
        """The transform; None without a file or a deviation."""
        from .color import Intensity
        from .storage import read_axes

        self.check_together()
        if not self.deviation or not self.intensity_file:
            return None
        return Intensity(self.deviation, *read_axes(str(self.intensity_file)), self.seed)

    def check_together(self) -> None:
        """The deviation is one."""
        if not 0 <= self.deviation < float("inf"):
            raise self.error("intensityStdDev", f"{self.deviation:g} is not a standard deviation", "write 0 or more")


class MeanParameters(TransformParameters):
    """Mean: subtracts the mean picture, which is kept in a file."""

    mean_file = Parameter("meanFile", PATH, default="", help="OpenCV XML file; `cntkpy convert --mean` makes one.")

    def make(self, dtype: np.dtype, channels: int) -> Transform | None:
        """The transform; None without a file."""
        from .mean import Mean
        from .storage import read_mean

        return Mean(read_mean(str(self.mean_file)), str(self.mean_file)) if self.mean_file else None


class TransposeParameters(TransformParameters):
    """Transpose: from one pixel after the other to one channel after the other (CHW, as convolutions want it)."""

    def make(self, dtype: np.dtype, channels: int) -> Transform | None:
        """The transform."""
        from .layout import Transpose

        return Transpose()


class CastParameters(TransformParameters):
    """Cast: converts values to float or double; the reader does so itself at the end."""

    precision = Parameter(
        "precision", choice("float", "double", ignore_case=True), default=None, own=True,
        help="float or double; if absent, as the reader.",
    )  # fmt: skip

    def make(self, dtype: np.dtype, channels: int) -> Transform | None:
        """The transform."""
        from readers.streams import DTYPES

        from .layout import Cast

        return Cast(DTYPES[self.precision] if self.precision else dtype)


TRANSFORMS: dict[str, type[TransformParameters]] = {
    "Crop": CropParameters,
    "Scale": ScaleParameters,
    "Color": ColorParameters,
    "Intensity": IntensityParameters,
    "Mean": MeanParameters,
    "Transpose": TransposeParameters,
    "Cast": CastParameters,
}
"""Declarations by name, in the order in which the old reader applies them."""


class TransformTypeParameters(Declared):
    """Every transform: which one it is."""

    type = Parameter("type", choice(*TRANSFORMS, ignore_case=True), own=True, help="Which transform it is.")
    module = Parameter("module", TEXT, default=None, own=True, help="Accepted and ignored.")
