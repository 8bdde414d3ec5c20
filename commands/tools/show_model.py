"""`cntkpy show MODEL`: what is in a model file."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cntk_config.base.diagnostics import UserError

if TYPE_CHECKING:
    from networks.graph.network import Network, Node

FORMATS = ("flat", "json")
EXIT_FAILED = 1
BINARY = b"B\0C\0N\0\0\0"
GRAPH = b'"cntkpy"'


def is_model(word: str) -> bool:
    """Whether a word of the command line names a model file rather than a configuration."""
    try:
        with Path(word).open("rb") as file:
            start = file.read(200)
    except (OSError, ValueError):
        return False
    return start.startswith(BINARY) or (start[8:9] == b"{" and (b"\0" in start[:8]) and GRAPH in start)


def show_model(path: str, form: str = "flat") -> int:
    """Print nodes, operations, inputs, shapes, numbers of parameters and groups; return the exit status."""
    from networks.files.model_file import load_model

    try:
        network = load_model(path)
    except UserError as error:
        print(error.diagnostic.render(), file=sys.stderr)
        return EXIT_FAILED
    found = describe(network)
    if form == "json":
        print(json.dumps({"model": path, **found}, indent=2, ensure_ascii=False))
    else:
        print("\n".join(_lines(path, found)))
    return 0


def describe(network: "Network") -> dict[str, Any]:
    """What is shown of a network, as plain data."""
    nodes = [_node(node) for node in sorted(network.nodes.values(), key=lambda node: node.name.lower())]
    return {
        "precision": network.precision,
        "nodes": nodes,
        "groups": {group: [node.name for node in members] for group, members in network.groups.items()},
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


def _lines(path: str, found: dict[str, Any]) -> list[str]:
    nodes = found["nodes"]
    head = f"{path}: {len(nodes)} nodes, {found['parameters']:,} parameters ({found['trainable']:,} trainable), "
    rows = [
        (
            node["name"],
            node["operation"] + (f"({', '.join(node['inputs'])})" if node["inputs"] else ""),
            "[" + " x ".join(str(d) for d in node["shape"]) + "]",
            _remark(node),
        )
        for node in nodes
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    widths = [min(width, limit) for width, limit in zip(widths, (40, 60, 30), strict=True)]
    lines = [head + found["precision"], ""]
    lines += [
        "  ".join(text.ljust(width) for text, width in zip(row, [*widths, 0], strict=True)).rstrip() for row in rows
    ]
    lines.append("")
    lines += [f"{group}: {', '.join(names)}" for group, names in found["groups"].items() if names]
    return lines


def _remark(node: dict[str, Any]) -> str:
    if "parameters" in node:
        rate = node["learningRateMultiplier"]
        return f"{node['parameters']:,} parameters" + (
            "" if rate == 1 else ", frozen" if rate == 0 else f", rate x {rate:g}"
        )
    if "computed" in node:
        return "computed" if node["computed"] else "not computed yet"
    return ""
