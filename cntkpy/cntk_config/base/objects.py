"""Objects by their names, imported when they are needed."""

import importlib
from typing import Any


def load_object(path: str) -> Any:
    """Return the object called `"module:name"`."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
