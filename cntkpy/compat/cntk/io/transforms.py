"""cntk.io.transforms: transforms of pictures."""

from cntkpy.readers.transforms import color, crop, mean, scale

from ..missing import no_attribute

__all__ = ["color", "crop", "mean", "scale"]

__getattr__ = no_attribute("cntk.io.transforms", __all__)
