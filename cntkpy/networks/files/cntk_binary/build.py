"""Records become a network: order, leaves, loops, and one error for everything that has no counterpart.

What each operation becomes is declared in `rules`.
"""

from __future__ import annotations

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks import nodes
from cntkpy.networks.files.cntk_binary.operations import DELAYS, rule
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.network import Network, Node, NodeTable, ValidatedNetwork
from cntkpy.networks.nodes.file_support.records import WITHOUT, NotSupported, Record, Records
from cntkpy.networks.nodes.file_support.target import Builder, Refusal, Refused, Target

_LISTED = 5


def build(records: Records) -> ValidatedNetwork:
    """Return the network of a file.

    Raises:
        BadFile: the records contradict each other.
        NotSupported: for all operations without counterpart at once, or a loop without delay.
        UserError: shapes or links that do not fit.
    """
    builder = Builder(records, Network(records.precision))
    for record in _in_order(records, DELAYS):
        try:
            node = rule(record.operation)(Target(record, builder))
        except Refused as refused:
            builder.refusals.append(refused.refusal)
            node = Node(record.name, nodes.operation("InputValue"))
        builder.made[record.name] = node
    if builder.refusals:
        raise _refused(builder.refusals)
    for node, name in builder.later:
        node.inputs.insert(0, builder.made[name])
    _finish(builder)
    network = builder.network.validate(exact_axes=records.exact_axes)
    for node in network.nodes.values():
        _shape_statistic(node)
    return network


def _finish(builder: Builder) -> None:
    """Nodes in the order of the file, without what was used up, and groups."""
    network = builder.network
    users = {i for node in network.nodes.values() for i in node.connected}
    grouped = {name for names in builder.records.groups.values() for name in names}
    dropped = {
        builder.made[name] for name in builder.used_up if builder.made[name] not in users and name not in grouped
    }
    order = NodeTable()
    for name in builder.records.records:
        if name in network.nodes and network.nodes[name] not in dropped:
            order.put(network.nodes[name])
    for node in network.nodes.values():
        if node not in dropped and node.name not in order:
            order.put(node)
    network.nodes = order
    for group, names in builder.records.groups.items():
        for name in names:
            if builder.made[name].name in network.nodes:
                network.add_to_group(group, builder.made[name])
    for node in network.nodes.values():
        if node.value is not None:
            node.value = np.array(node.value, network.dtype)


def _shape_statistic(node: Node) -> None:
    """Values of pre-computed nodes are stored without shape: give them that of their input."""
    if not node.kind.precompute or node.value is None or node.shape is None:
        return
    if node.value.size != shapes.size(node.shape):
        raise UserError(
            "BadModel", f"{node.operation} '{node.name}' has {node.value.size} values, not {shapes.text(node.shape)}"
        )
    node.value = node.value.reshape(tuple(reversed(node.shape)))


# ---- order


def _in_order(records: Records, delays: frozenset[str]) -> list[Record]:
    """Inputs before their users; where a loop is closed, the delay node comes before its input.

    Raises:
        NotSupported: a loop without delay node.
    """
    table = records.records
    done: set[str] = set()
    order: list[Record] = []

    def finish(name: str) -> None:
        done.add(name)
        order.append(table[name])

    for root in table:
        if root in done:
            continue
        path, places = [root], {root: 0}
        pending = [list(reversed(table[root].inputs))]
        while path:
            if not pending[-1]:
                pending.pop()
                del places[path[-1]]
                finish(path.pop())
                continue
            child = pending[-1].pop()
            if child in done:
                continue
            if child not in places:
                places[child] = len(path)
                path.append(child)
                pending.append(list(reversed(table[child].inputs)))
                continue
            cut = places[child] + _delay_of(table, path[places[child] :], delays)
            for name in path[cut + 1 :]:
                del places[name]
            del path[cut + 1 :], pending[cut + 1 :]
            pending[-1] = [name for name in pending[-1] if name != table[path[-1]].inputs[0]]
    return order


def _delay_of(table: dict[str, Record], loop: list[str], delays: frozenset[str]) -> int:
    """Return the index of a delay of the next node in a loop (each depends on the next, the last on the first)."""
    for index in range(len(loop) - 1, -1, -1):
        record, following = table[loop[index]], loop[(index + 1) % len(loop)]
        if record.operation in delays and record.inputs[0] == following:
            return index
    listed = ", ".join(f"'{name}'" for name in loop[:6])
    raise NotSupported(f"the loop through '{loop[0]}' has no PastValue or FutureValue node (loop: {listed})")


# ---- refusals


def _refused(refusals: list[Refusal]) -> NotSupported:
    """Return one error for everything that has no counterpart."""
    certain = [r for r in refusals if not r.shape_missing] or refusals
    kinds: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in certain:
        kinds.setdefault((refusal.record.operation, refusal.why), []).append(refusal)
    parts: list[str] = []
    for (operation, why), members in kinds.items():
        names = [f"'{m.record.name[:80]}'" + (f" in {m.record.block}" if m.record.block else "") for m in members]
        listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
        parts.append(f"{operation} ({listed}" + (f": {why})" if why else ")"))
    count = len(parts)
    reason = "1 operation is" if count == 1 else f"{count} operations are"
    hints = list(dict.fromkeys(r.hint for r in certain if r.hint))
    hint = "; ".join(hints[:2]) or WITHOUT
    return NotSupported(f"{reason} not available here: {', '.join(parts)}", hint)
