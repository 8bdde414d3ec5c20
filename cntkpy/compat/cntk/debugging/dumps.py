"""Dumps of functions as text."""

from __future__ import annotations

from typing import Any

from cntkpy.networks.builders.python.functions.mixins.structure import signature_text

from ..logging.graph import plot
from ..missing import no_attribute


def dump_signature(root: Any, tag: str | None = None) -> None:
    """Print the inputs of a function, its outputs and its parameters, with their shapes.

    Args:
        root: the function, or a layer that was applied.
        tag: begins the line.
    """
    print(signature_text(root, tag or root.name or "Function"))


def dump_function(root: Any, tag: str | None = None) -> None:
    """Print a function part by part, inputs before results: what each is computed from, its shape, parameters.

    Args:
        root: the function, or a layer that was applied.
        tag: printed in front.
    """
    dump_signature(root, tag)
    print(plot(root), end="")
    for parameter in root.parameters:
        print(parameter)


__all__ = ["dump_function", "dump_signature"]

__getattr__ = no_attribute("cntk.debugging.debug", __all__)
