"""`cntkpy show MODEL`: what is in a model file."""

import json
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.diagnostics import UserError, printable, printable_json
from cntkpy.commands.console import print_error

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Network, Node
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
    """Return the description of a file that cannot become a network."""
    nodes = [_record(record) for record in sorted(records.records.values(), key=lambda record: record.name.lower())]
    return _found(records.precision, nodes, records.groups)


def _record(record: "Record") -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": record.name,
        "operation": record.operation,
        "inputs": list(record.inputs),
        "shape": list(record.shape or ()),
    }
    if record.operation == "LearnableParameter":
        entry["parameters"] = 0 if record.value is None else int(record.value.size)
        entry["learningRateMultiplier"] = record.attributes["learningRateMultiplier"]
    if record.id not in ("", record.name):
        entry["id"] = record.id
    return entry


def describe(network: "Network") -> dict[str, Any]:
    """Return the description of a network, as plain data."""
    nodes = [_node(node) for node in _in_order(network)]
    groups = {group: [node.name for node in members] for group, members in network.groups.items()}
    return _found(network.precision, nodes, groups)


def _in_order(network: "Network") -> "list[Node]":
    """Return the nodes of a network, each behind its inputs; in the order of the file where loops forbid that."""
    from cntkpy.networks.graph.node import NodeError
    from cntkpy.networks.graph.order import components

    try:
        return [node for component in components(network.nodes.values()) for node in component]
    except NodeError:
        return list(network.nodes.values())


def _found(precision: str, nodes: list[dict[str, Any]], groups: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "precision": precision,
        "nodes": nodes,
        "groups": groups,
        "parameters": sum(node.get("parameters", 0) for node in nodes),
        "trainable": sum(node.get("parameters", 0) for node in nodes if node.get("learningRateMultiplier", 0) > 0),
    }


def _node(node: "Node") -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": node.name,
        "operation": node.operation,
        "inputs": [source.name for source in node.connected],
        "shape": list(node.shape or ()),
    }
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
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    widths = [min(width, limit) for width, limit in zip(widths, (40, 60, 30), strict=True)]
    lines = [head + data["precision"], ""]
    lines += [
        "  ".join(text.ljust(width) for text, width in zip(row, [*widths, 0], strict=True)).rstrip() for row in rows
    ]
    lines.append("")
    lines += [f"{group}: {', '.join(names)}" for group, names in data["groups"].items() if names]
    return lines


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
