"""cntk.contrib: nothing of it is here; an import says what to use instead."""

from ..missing import no_attribute

__all__: list[str] = []

__getattr__ = no_attribute("cntk.contrib", __all__)
