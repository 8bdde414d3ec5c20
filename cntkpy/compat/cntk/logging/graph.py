"""cntk.logging.graph: what a function is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cntkpy.cntk_config.base.writing import output_file
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.recipes import resolve
from cntkpy.networks.graph.plot import dot_text, draw
from cntkpy.trainers.fronts.cntk2.checks import check_type

from ..missing import no_attribute
from ..ops.functions import Function as AnyFunction


def find_by_name(node: Any, node_name: str, depth: int = 0) -> Function | None:
    """Return the function of that name; None if there is none."""
    return node.find_by_name(node_name, depth)


def find_all_with_name(node: Any, node_name: str, depth: int = 0) -> list[Function]:
    """Return all functions of that name."""
    return node.find_all_with_name(node_name, depth)


def find_by_uid(node: Any, node_uid: str, depth: int = -1) -> Function | None:
    """Return the function with that `uid` among all that `node` depends on; None if there is none."""
    match = depth_first_search(node, lambda function: function.uid == node_uid.removesuffix("_Output_0"), depth)
    return match[0] if match else None


def depth_first_search(
    root: Any, visitor: Callable[[Function], bool], depth: int = 0, sort_by_distance: bool = False
) -> list[Function]:
    """Return the functions that `root` depends on, and itself, for which `visitor` is true.

    Args:
        root: the function.
        visitor: says which functions are wanted.
        depth: how many blocks (`Function.is_block`) around each other are looked into; -1: all.
        sort_by_distance: the functions nearest to `root` first; else each is followed by what it depends on.
    """
    resolve(root.roots)
    waiting = [(function.root_function, depth, 0) for function in reversed(root.outputs)]
    visited: dict[tuple[Function, int], tuple[int, Function]] = {}
    while waiting:
        function, left, distance = waiting.pop()
        key = function, function.depth
        if key in visited:
            continue
        visited[key] = distance, function
        if function.is_block and left != 0:
            waiting.append((function.block_root, left - 1, distance + 1))
        elif function.is_output:
            waiting.extend((source.root_function, left, distance + 1) for source in reversed(function.inputs))
    values = sorted(visited.values(), key=lambda pair: pair[0]) if sort_by_distance else visited.values()
    return [function for _, function in values if visitor(function)]


def get_node_outputs(node: Any, depth: int = 0) -> list[Function]:
    """Return the functions that `node` depends on, and itself, that are computed from others."""
    return depth_first_search(node, lambda function: function.is_output, depth)


def plot(root: Any, filename: str | Path | None = None) -> str:
    """Return the graph as text, and as a file in the DOT language or a picture.

    Args:
        root: the function.
        filename: a file that ends in .dot; .svg, .png, .pdf and others are drawn by Graphviz. None: none is written.

    Raises:
        UserError: another ending, or Graphviz is not installed.
    """
    check_type("what is plotted", root, AnyFunction, "plot(z, 'z.dot')")
    if filename is not None and Path(filename).suffix != ".dot":
        draw(dot_text(root.network), filename)
    elif filename is not None:
        with output_file(filename) as file:
            file.write(dot_text(root.network).encode("utf-8"))
    lines = [
        f"{output!r}({', '.join(map(repr, output.inputs))}) -> {output.shape}" for output in get_node_outputs(root, -1)
    ]
    return "\n".join(reversed(lines)) + "\n"


__all__ = ["depth_first_search", "find_all_with_name", "find_by_name", "find_by_uid", "get_node_outputs", "plot"]

__getattr__ = no_attribute("cntk.logging.graph", __all__)
