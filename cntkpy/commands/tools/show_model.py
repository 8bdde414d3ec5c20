"""`cntkpy show MODEL`: what is in a model file."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.diagnostics import UserError, printable, printable_json
from cntkpy.commands.console import print_error

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Network, Node, ValidatedNetwork
    from cntkpy.networks.nodes.file_support.records import Record, Records

FORMATS = ("flat", "json")
EXIT_FAILED = 1


def show_model(path: str, form: str = "flat") -> int:
    """Print nodes, operations, inputs, shapes, numbers of parameters and groups; return the exit status.

    Of a model of CNTK that cannot be used here, what the file says is printed before the error.
    """
    from cntkpy.networks.files.model_file import load_model

    records = _records(path)
    try:
        name = describe(load_model(path))
    except UserError as error:
        if records is not None:
            _print(path, _described(records), form)
        print_error(error)
        return EXIT_FAILED
    if records is not None:
        for node in name["nodes"]:
            record = records.records.get(node["name"])
            if record is not None and record.id not in ("", record.name):
                node["id"] = record.id
    _print(path, name, form)
    return 0


def _print(path: str, data: dict[str, Any], form: str) -> None:
    if form == "json":
        print(printable_json(json.dumps({"model": path, **data}, indent=2, ensure_ascii=False)))
    else:
        print(printable("\n".join(_lines(path, data))))


def _records(path: str) -> "Records | None":
    """Return the records of a file of CNTK; None if it is another file, or damaged."""
    from cntkpy.networks.files.cntk_binary.load import load_records
    from cntkpy.networks.files.cntk_binary.recognise import is_cntk

    if not is_cntk(path):
        return None
    try:
        return load_records(path)
    except UserError:
        return None


def _described(records: "Records") -> dict[str, Any]:
    """Return what `show` says of records of CNTK."""
    nodes = [_record(record) for record in sorted(records.records.values(), key=lambda record: record.name.lower())]
    return with_totals({"precision": records.precision}, nodes, records.groups)


def _record(record: "Record") -> dict[str, Any]:
    entry = node_entry(record.name, record.operation, record.inputs, record.shape)
    if record.operation == "LearnableParameter":
        entry["parameters"] = 0 if record.value is None else int(record.value.size)
        entry["learningRateMultiplier"] = record.attributes["learningRateMultiplier"]
    if record.id not in ("", record.name):
        entry["id"] = record.id
    return entry


def describe(network: "Network") -> dict[str, Any]:
    """Return what `show` says of a network, as data; nodes in the order of computation."""
    nodes = [_node(node) for node in _in_order(network)]
    return with_totals({"precision": network.precision}, nodes, names_by_group(network))


def names_by_group(network: "Network | ValidatedNetwork") -> dict[str, list[str]]:
    """Return by group the names of its nodes."""
    return {group: [node.name for node in members] for group, members in network.groups.items()}


def with_totals(head: dict[str, Any], nodes: list[dict[str, Any]], groups: Mapping[str, Any]) -> dict[str, Any]:
    """Return nodes and groups of a network, and the numbers of parameters of all nodes, behind entries of a head."""
    numbers = [(node.get("parameters", 0), node.get("learningRateMultiplier", 0)) for node in nodes]
    trainable = sum(count for count, rate in numbers if rate > 0)
    total = sum(count for count, _ in numbers)
    return {**head, "nodes": nodes, "groups": groups, "parameters": total, "trainable": trainable}


def node_entry(name: str, operation: str, inputs: Iterable[str], shape: Iterable[int] | None) -> dict[str, Any]:
    """Return what every node has."""
    return {"name": name, "operation": operation, "inputs": list(inputs), "shape": list(shape or ())}


def _in_order(network: "Network") -> "list[Node]":
    """Return the nodes of a network, each behind its inputs; in the order of the file where loops forbid that."""
    from cntkpy.networks.graph.node import NodeError
    from cntkpy.networks.graph.order import components

    try:
        return [node for component in components(network.nodes.values()) for node in component]
    except NodeError:
        return list(network.nodes.values())


def _node(node: "Node") -> dict[str, Any]:
    entry = node_entry(node.name, node.operation, (source.name for source in node.connected), node.shape)
    if node.is_parameter:
        entry["parameters"] = 0 if node.value is None else int(node.value.size)
        entry["learningRateMultiplier"] = node.learning_rate_multiplier
    if node.kind.precompute:
        entry["computed"] = node.computed
    return entry


def _lines(path: str, data: dict[str, Any]) -> list[str]:
    nodes = data["nodes"]
    head = f"{path}: {len(nodes)} nodes, {data['parameters']:,} parameters ({data['trainable']:,} trainable), "
    rows = [
        (
            node["name"],
            node["operation"] + (f"({', '.join(node['inputs'])})" if node["inputs"] else ""),
            "[" + " x ".join(str(d) for d in node["shape"]) + "]" if node["shape"] else "",
            _remark(node),
        )
        for node in nodes
    ]
    return [head + data["precision"], *table_lines(rows, (40, 60, 30), data["groups"])]


def table_lines(rows: list[tuple[str, ...]], limits: tuple[int, ...], groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a table of nodes in lines, then their groups.

    Args:
        rows: the cells of each node.
        limits: the largest widths of all columns but the last.
        groups: by group the names of its nodes.
    """
    widths = [min(max((len(row[i]) for row in rows), default=0), limit) for i, limit in enumerate(limits)]
    table = ["  ".join(text.ljust(width) for text, width in zip(row, [*widths, 0], strict=True)) for row in rows]
    listed = [f"{group}: {', '.join(names)}" for group, names in groups.items() if names]
    return ["", *(line.rstrip() for line in table), "", *listed]


def _remark(node: dict[str, Any]) -> str:
    remarks: list[str] = []
    if "parameters" in node:
        rate = node["learningRateMultiplier"]
        remarks.append(f"{node['parameters']:,} parameters")
        remarks += [] if rate == 1 else ["frozen" if rate == 0 else f"rate x {rate:g}"]
    if "computed" in node:
        remarks.append("computed" if node["computed"] else "not computed yet")
    if "id" in node:
        remarks.append(f"CNTK's {node['id']}")
    return ", ".join(remarks)
