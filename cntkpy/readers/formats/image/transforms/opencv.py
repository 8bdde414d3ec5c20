"""OpenCV, imported when the first picture is about to be read."""

from __future__ import annotations

import importlib
import os
from functools import cache
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import how_to_install

MOST_PIXELS = 1 << 28
"""No picture may have more pixels: 16384 x 16384."""


@cache
def opencv() -> Any:
    """Return the module cv2, or an error that says how to install it."""
    os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(MOST_PIXELS))  # read once, when it is imported
    try:
        return importlib.import_module("cv2")
    except ImportError as error:
        raise UserError(
            "MissingPackage",
            f"pictures are decoded by OpenCV, which is not installed: {error}",
            hint=how_to_install("image"),
        ) from error
