"""A place for every node of a network: layers from the inputs down, few crossings, no overlap.

The method is Sugiyama's in its simplest form: layers by the longest path, an order inside of layers by the mean place
of the neighbours, then coordinates that move towards the neighbours as far as the order allows.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

GAP, LAYER_GAP = 22.0, 44.0
BEND_WIDTH = 10.0
"""Width of the place where an edge passes a layer."""
SWEEPS = 8

Key = Hashable


@dataclass
class Placed:
    """Positions in a layout.

    Attributes:
        boxes: the middle of each node across, and its upper edge.
        paths: of each edge the points that it passes, from the lower edge of one node to the upper edge of the other.
        width, height: of the whole.
    """

    boxes: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    paths: dict[tuple[str, str], list[tuple[float, float]]] = field(
        default_factory=dict[tuple[str, str], list[tuple[float, float]]]
    )
    width: float = 0.0
    height: float = 0.0


def place(sizes: Mapping[str, tuple[float, float]], edges: Iterable[tuple[str, str]]) -> Placed:
    """Return places for nodes of these sizes (width, height); an edge that closes a circle does not count for layers.

    Returns:
        The places; edges that close a circle have no path.
    """
    forward = _without_circles(sizes, edges)
    layer = _layers(sizes, forward)
    rows: list[list[Key]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name in sizes:
        rows[layer[name]].append(name)
    links: list[tuple[Key, Key]] = []
    chains: dict[tuple[str, str], list[Key]] = {}
    for source, target in forward:
        bends: list[Key] = [(source, target, row) for row in range(layer[source] + 1, layer[target])]
        for bend, row in zip(bends, range(layer[source] + 1, layer[target]), strict=True):
            rows[row].append(bend)
        chain: list[Key] = [source, *bends, target]
        chains[source, target] = chain
        links += itertools.pairwise(chain)
    widths = {key: sizes[key][0] if isinstance(key, str) else BEND_WIDTH for row in rows for key in row}
    above, below = _neighbours(links)
    _order(rows, above, below)
    middle = _across(rows, widths, above, below)
    return _placed(sizes, rows, middle, widths, chains)


def _without_circles(
    sizes: Mapping[str, tuple[float, float]], edges: Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return the edges but those that lead back, in a search in depth that needs no recursion."""
    known_edges = [
        edge for edge in dict.fromkeys(edges) if edge[0] in sizes and edge[1] in sizes and edge[0] != edge[1]
    ]
    targets: dict[str, list[str]] = {}
    for source, target in known_edges:
        targets.setdefault(source, []).append(target)
    active, done, back = set[str](), set[str](), set[tuple[str, str]]()
    for root in sizes:
        stack = [(root, iter(targets.get(root, ())))] if root not in done else []
        active.update([root] if stack else [])
        while stack:
            name, successors = stack[-1]
            following = next(successors, None)
            if following is None:
                stack.pop()
                active.discard(name)
                done.add(name)
            elif following in active:
                back.add((name, following))
            elif following not in done:
                active.add(following)
                stack.append((following, iter(targets.get(following, ()))))
    return [edge for edge in known_edges if edge not in back]


def _layers(sizes: Mapping[str, tuple[float, float]], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the longest path to each node; one without inputs stands right above the first that takes it."""
    sources: dict[str, list[str]] = {}
    targets: dict[str, list[str]] = {}
    for source, target in edges:
        sources.setdefault(target, []).append(source)
        targets.setdefault(source, []).append(target)
    left = {name: len(sources.get(name, ())) for name in sizes}
    ready = [name for name in sizes if not left[name]]
    layer: dict[str, int] = {}
    for name in ready:  # grows
        layer[name] = max((layer[source] + 1 for source in sources.get(name, ())), default=0)
        for target in targets.get(name, ()):
            left[target] -= 1
            if not left[target]:
                ready.append(target)
    for name in sizes:
        if name not in sources and name in targets:
            layer[name] = min(layer[target] for target in targets[name]) - 1
    return layer


def _neighbours(links: Sequence[tuple[Key, Key]]) -> tuple[dict[Key, list[Key]], dict[Key, list[Key]]]:
    above: dict[Key, list[Key]] = {}
    below: dict[Key, list[Key]] = {}
    for upper, lower in links:
        above.setdefault(lower, []).append(upper)
        below.setdefault(upper, []).append(lower)
    return above, below


def _order(rows: list[list[Key]], above: dict[Key, list[Key]], below: dict[Key, list[Key]]) -> None:
    """Sort the nodes of every layer by the mean place of their neighbours, down and up."""
    for sweep in range(SWEEPS):
        neighbours = below if sweep % 2 else above
        for index in range(len(rows) - 1, -1, -1) if sweep % 2 else range(len(rows)):
            neighbour = index + (1 if sweep % 2 else -1)
            if not 0 <= neighbour < len(rows):
                continue
            where = {key: number for number, key in enumerate(rows[neighbour])}
            own_numbers = {key: number for number, key in enumerate(rows[index])}
            scale = len(rows[neighbour]) / max(1, len(rows[index]))
            rows[index].sort(
                key=lambda key, n=neighbours, w=where, o=own_numbers, s=scale: _mean(n.get(key), w, o[key] * s)
            )


def _mean(keys: list[Key] | None, where: Mapping[Key, float], otherwise: float) -> float:
    return sum(where[key] for key in keys) / len(keys) if keys else otherwise


def _across(
    rows: list[list[Key]], widths: dict[Key, float], above: dict[Key, list[Key]], below: dict[Key, list[Key]]
) -> dict[Key, float]:
    """Return the middle of every node: side by side at first, then as near to its neighbours as the order allows."""
    middle: dict[Key, float] = {}
    for row in rows:
        x = -(sum(widths[key] for key in row) + GAP * (len(row) - 1)) / 2
        for key in row:
            middle[key] = x + widths[key] / 2
            x += widths[key] + GAP
    for sweep in range(SWEEPS):
        neighbours = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            wanted = [_mean(neighbours.get(key), middle, middle[key]) for key in row]
            middle.update(zip(row, _apart(wanted, [widths[key] for key in row]), strict=True))
    return middle


def _apart(wanted: list[float], widths: list[float]) -> list[float]:
    """Return the places nearest to the wanted ones at which nothing overlaps: neighbours that would become a block."""
    blocks: list[tuple[list[int], float]] = []  # members, and the place of the first one
    offsets = [0.0]
    for width, other_width in itertools.pairwise(widths):
        offsets.append(offsets[-1] + (width + other_width) / 2 + GAP)
    for index in range(len(wanted)):
        members = [index]
        start = wanted[index] - offsets[index]
        while blocks and blocks[-1][1] > start:
            earlier, _ = blocks.pop()
            members = earlier + members
            start = sum(wanted[i] - offsets[i] for i in members) / len(members)
        blocks.append((members, start))
    return [start + offsets[index] for members, start in blocks for index in members]


def _placed(
    sizes: Mapping[str, tuple[float, float]],
    rows: list[list[Key]],
    middle: dict[Key, float],
    widths: dict[Key, float],
    chains: dict[tuple[str, str], list[Key]],
) -> Placed:
    left = min((middle[key] - widths[key] / 2 for row in rows for key in row), default=0.0)
    right = max((middle[key] + widths[key] / 2 for row in rows for key in row), default=0.0)
    placed = Placed(width=right - left)
    top: dict[Key, float] = {}
    bottom: dict[Key, float] = {}
    value = 0.0
    for row in rows:
        high = max((sizes[key][1] for key in row if isinstance(key, str)), default=0.0)
        for key in row:
            height = sizes[key][1] if isinstance(key, str) else high
            top[key] = value + (high - height) / 2
            bottom[key] = top[key] + height
            if isinstance(key, str):
                placed.boxes[key] = middle[key] - left, top[key]
        value += high + LAYER_GAP
    placed.height = max(0.0, value - LAYER_GAP)
    for edge, (source, *bends, target) in chains.items():
        points = [(middle[source] - left, bottom[source])]
        points += [(middle[bend] - left, y) for bend in bends for y in (top[bend], bottom[bend])]
        placed.paths[edge] = [*points, (middle[target] - left, top[target])]
    return placed
