"""What a function is, as text."""

from __future__ import annotations

from typing import Any

from networks.builders.python.functions.function import Function

from ..logging.graph import plot
from ..missing import no_attribute


def dump_signature(root: Any, tag: str | None = None) -> None:
    """Print the inputs of a function, its outputs and its parameters, with their shapes.

    Args:
        root: the function, or a layer that was applied.
        tag: begins the line.
    """
    given = ", ".join(map(_typed, root.signature))
    results = ", ".join(_type(one) for one in root.outputs)
    print(f"{tag or root.name or 'Function'}({given}) -> {results}")


def dump_function(root: Any, tag: str | None = None) -> None:
    """Print a function part by part, inputs before results: what each is computed from, its shape, parameters.

    Args:
        root: the function, or a layer that was applied.
        tag: printed in front.
    """
    dump_signature(root, tag)
    print(plot(root), end="")
    for one in root.parameters:
        print(f"{one!r}: {one.shape}")


def _typed(one: Function) -> str:
    return f"{one.name or one.uid}: {_type(one)}"


def _type(one: Function) -> str:
    """A type as `cntk.layers.typing` writes it."""
    axes = ", ".join(map(str, one.shape))
    tensor = f"Tensor[{axes}]" if not one.is_sparse else f"SparseTensor[{axes}]"
    return f"Sequence[{tensor}]" if len(one.dynamic_axes) > 1 else tensor


__all__ = ["dump_function", "dump_signature"]

__getattr__ = no_attribute("cntk.debugging.debug", __all__)
