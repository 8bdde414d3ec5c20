"""cntk.utils: the name that betas of CNTK 2.0 had for cntk.logging, and for what makes data of class numbers."""

from typing import Any

import numpy as np

from . import logging
from .core import Value
from .core import asarray as asarray
from .core import asvalue as asvalue
from .internal import utils as helpers
from .internal.sanitize import sanitize_dtype_cntk as sanitize_dtype_cntk
from .internal.utils import *  # noqa: F403
from .logging import *  # noqa: F403
from .missing import no_attribute, warn_beta

warn_beta("cntk.utils", "cntk.logging, and Value.one_hot")


def one_hot(batch: Any, num_classes: int, dtype: Any = np.float32, device: Any = None) -> Value:
    """Class numbers as sparse vectors; see `Value.one_hot`."""
    return Value.one_hot(batch, num_classes, dtype, device)


__path__: list[str] = []
"""Betas had modules in it."""

__all__ = ["asarray", "asvalue", "one_hot", "sanitize_dtype_cntk"]
__all__ += helpers.__all__
__all__ += logging.__all__

__getattr__ = no_attribute("cntk.utils", __all__)
