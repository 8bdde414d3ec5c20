"""`cntkpy show --network` and `cntkpy plot --network`: the network that a configuration describes."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cntkpy.cntk_config import load
from cntkpy.cntk_config.base.diagnostics import UserError, printable, printable_json
from cntkpy.cntk_config.base.writing import output_file
from cntkpy.commands.console import print_error
from cntkpy.commands.described_network import Described, describe_network
from cntkpy.commands.tools.show_model import FORMATS, names_by_group, node_entry, table_lines, with_totals
from cntkpy.commands.words import sort_words

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Node

EXIT_ERROR = 2


def show_network(words: list[str], form: str = "flat") -> int:
    """Print nodes, operations, inputs, shapes, parameters and origins; return the exit status."""
    if form not in FORMATS:
        raise click.UsageError("A network is shown with --format flat or json.")
    try:
        described = _described(words)
    except UserError as error:
        print_error(error)
        return EXIT_ERROR
    name = describe(described)
    if form == "json":
        print(printable_json(json.dumps(name, indent=2, ensure_ascii=False)))
    else:
        print(printable("\n".join(lines(name))))
    return 0


def plot_network(words: list[str], out: str | None) -> int:
    """Draw the network: a picture, or with the ending .dot its text for Graphviz; return the exit status."""
    from cntkpy.networks.graph.plot import dot_text, graphviz, render

    try:
        described = _described(words)
        picture = Path(out or f"{described.command}.svg")
        text = dot_text(described.network, described.command).encode()
        if picture.suffix == ".dot":
            with output_file(picture) as file:
                file.write(text)
        elif graphviz() is None and (svg := _drawn(described, picture)) is not None:
            with output_file(picture) as file:
                file.write(svg.encode())
        elif graphviz() is None:
            raise UserError(
                "MissingPackage",
                f"{picture} cannot be drawn: Graphviz' program 'dot' is not installed",
                hint=f"without it write --out {picture.with_suffix('.svg')}, or the text that it draws: --out "
                f"{picture.with_suffix('.dot')}",
            )
        else:
            with tempfile.TemporaryDirectory(prefix="cntkpy-") as folder:  # a file NAME.dot of the user stays
                dot_file = Path(folder) / "network.dot"
                with output_file(dot_file) as file:
                    file.write(text)
                render(dot_file, picture)
        print(picture)
    except UserError as error:
        print_error(error)
        return EXIT_ERROR
    return 0


def _drawn(described: Described, picture: Path) -> str | None:
    """Return the network as reports draw it, where a picture ends in .svg; None if it has too many nodes for that."""
    from cntkpy.commands.report.drawing import standalone
    from cntkpy.commands.report.picture import parts_of
    from cntkpy.commands.report.picture import picture as draw

    drawn = draw(parts_of(describe(described))) if picture.suffix == ".svg" else None
    return None if drawn is None else standalone(str(drawn))


def _described(words: list[str]) -> Described:
    sorted_words = sort_words(words, files=1)
    if len(sorted_words.rest) > 1:
        raise click.UsageError(f"One command at most can be named; there are: {' '.join(sorted_words.rest)}")
    return describe_network(load(sorted_words.configurations[0]), sorted_words.rest[0] if sorted_words.rest else None)


def describe(described: Described) -> dict[str, Any]:
    """Return the description of a network, as plain data."""
    network = described.network
    nodes = [_node(node, described.trails.get(node, [])) for node in network.nodes.values()]
    head = {"command": described.command, "builder": described.builder, "precision": network.precision}
    return with_totals(head, nodes, names_by_group(network))


def _node(node: Node, trail: list[str]) -> dict[str, Any]:
    entry = node_entry(node.name, node.operation, (source.name for source in node.connected), node.shape)
    entry["minibatch"] = node.has_layout
    if node.is_parameter:
        entry["parameters"] = math.prod(node.shape or ())
        entry["learningRateMultiplier"] = node.learning_rate_multiplier
        if node.init is not None:
            entry["init"] = node.init.kind
            if node.init.kind == "fixedValue":
                entry["value"] = node.init.value
            elif node.init.random:
                entry["seed"] = node.init.seed
    if trail:
        entry["at"], entry["calledAt"] = trail[0], trail[1:]
    return entry


def lines(data: dict[str, Any]) -> list[str]:
    """Return the table of a network: name, operation, shape, parameters, and where it was made."""
    nodes = data["nodes"]
    rows = [
        (
            node["name"],
            node["operation"] + (f" ({', '.join(node['inputs'])})" if node["inputs"] else ""),
            _shape_text(node),
            _parameter(node),
            " < ".join([node["at"], *node["calledAt"]]) if "at" in node else "",
        )
        for node in nodes
    ]
    head = f"{data['command']}: {len(nodes)} nodes, {data['parameters']:,} parameters "
    head += f"({data['trainable']:,} trainable), {data['precision']}, {data['builder']}"
    return [head, *table_lines(rows, (44, 60, 24, 40), data["groups"])]


def node_facts(described: Described, node: Node) -> Iterator[tuple[str, str]]:
    """Yield all about one node: what it is, what it takes and who takes it, and where it was made."""
    row = _node(node, described.trails.get(node, []))
    yield "", f"{node.name} = {node.operation}" + (f" ({', '.join(row['inputs'])})" if row["inputs"] else "")
    yield "shape", _shape_text(row)
    if node.is_parameter:
        yield "value", _parameter(row)
    yield "meaning", node.kind.meaning
    users = [item.name for item in described.network.nodes.values() if node in item.connected]
    groups = [group for group, members in described.network.groups.items() if node in members]
    if users:
        yield "used by", f"{', '.join(users[:10])}" + (", ..." if len(users) > 10 else "")
    if groups:
        yield "groups", ", ".join(groups)
    for index, place in enumerate(described.trails.get(node, [])):
        yield "called" if index else "made", f"at {place}"


def _shape_text(node: dict[str, Any]) -> str:
    """`[3 x 2 x *]`; the star stands for the cells of the minibatch."""
    return f"[{' x '.join([str(d) for d in node['shape']] + ['*'] * node['minibatch'])}]"


def _parameter(node: dict[str, Any]) -> str:
    if "parameters" not in node:
        return ""
    words = [f"{node['parameters']:,} element{'' if node['parameters'] == 1 else 's'}"]
    if "init" in node:
        words.append(f"{node['value']:g}" if "value" in node else node["init"])
    if node.get("seed") is not None:
        words.append(f"seed {node['seed']}")
    rate = node["learningRateMultiplier"]
    words += [] if rate == 1 else ["not trained" if rate == 0 else f"rate x {rate:g}"]
    return ", ".join(words)
