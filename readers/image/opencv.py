"""OpenCV, imported when the first picture is about to be read."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from cntk_config.diagnostics import UserError


@cache
def opencv() -> Any:
    """The module cv2, or an error that says how to install it."""
    try:
        return importlib.import_module("cv2")
    except ImportError as error:
        raise UserError(
            f"pictures are decoded by OpenCV, which is not installed: {error}",
            hint="pip install 'cntkpy[image]'", kind="MissingPackage",
        ) from error  # fmt: skip
