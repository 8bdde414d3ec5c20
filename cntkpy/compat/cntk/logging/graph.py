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
    """The function of that name; None if there is none."""
    return node.find_by_name(node_name, depth)


def find_all_with_name(node: Any, node_name: str, depth: int = 0) -> list[Function]:
    """All functions of that name."""
    return node.find_all_with_name(node_name, depth)


def find_by_uid(node: Any, node_uid: str, depth: int = -1) -> Function | None:
    """The function with that `uid` among all that `node` depends on; None if there is none."""
    found = depth_first_search(node, lambda one: one.uid == node_uid, depth)
    return found[0] if found else None


def depth_first_search(
    root: Any, visitor: Callable[[Function], bool], depth: int = 0, sort_by_distance: bool = False
) -> list[Function]:
    """The functions that `root` depends on, and itself, for which `visitor` is true.

    Args:
        root: the function.
        visitor: says which functions are wanted.
        depth: how many blocks (`Function.is_block`) around each other are looked into; -1: all.
        sort_by_distance: the functions nearest to `root` first; else each is followed by what it depends on.
    """
    resolve(root.roots)
    waiting = [(one.root_function, depth, 0) for one in reversed(root.outputs)]
    found: dict[tuple[Function, bool], tuple[int, Function]] = {}
    while waiting:
        one, left, distance = waiting.pop()
        key = one, one.is_block
        if key in found:
            continue
        found[key] = distance, one
        if one.is_block and left != 0:
            waiting.append((one.block_root, left - 1, distance + 1))
        elif one.is_output:
            waiting.extend((source.root_function, left, distance + 1) for source in reversed(one.inputs))
    values = sorted(found.values(), key=lambda pair: pair[0]) if sort_by_distance else found.values()
    return [one for _, one in values if visitor(one)]


def get_node_outputs(node: Any, depth: int = 0) -> list[Function]:
    """The functions that `node` depends on, and itself, that are computed from others."""
    return depth_first_search(node, lambda one: one.is_output, depth)


def plot(root: Any, filename: str | Path | None = None) -> str:
    """The graph as text, and as a file in the DOT language or a picture.

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
    lines = [f"{one!r}({', '.join(map(repr, one.inputs))}) -> {one.shape}" for one in get_node_outputs(root, -1)]
    return "\n".join(reversed(lines)) + "\n"


__all__ = ["depth_first_search", "find_all_with_name", "find_by_name", "find_by_uid", "get_node_outputs", "plot"]

__getattr__ = no_attribute("cntk.logging.graph", __all__)
