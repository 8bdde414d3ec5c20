"""Section of a report: the networks that were trained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cntkpy.commands.report.curves import title_of
from cntkpy.commands.report.markup import Markup, tag
from cntkpy.commands.report.picture import parameter_table, parts_of, picture
from cntkpy.commands.runs import plain
from cntkpy.commands.runs.record import Run


def network_section(runs: Sequence[Run]) -> Markup | None:
    """Return a picture of every network, once where several trainings have the same."""
    names: dict[str, list[str]] = {}
    networks: dict[str, dict[str, Any]] = {}
    for run in runs:
        for curves in run.curves:
            if curves.network is not None:
                key = json.dumps([curves.network.get("nodes"), curves.network.get("groups")], sort_keys=True)
                names.setdefault(key, []).append(title_of(run, curves))
                networks[key] = curves.network
    if not networks:
        return None
    return tag("div", [_network(networks[key], names[key], len(networks) > 1) for key in networks])


def _network(network: dict[str, Any], names: list[str], several: bool) -> Markup:
    parts = parts_of(network)
    counts = [plain.count(network.get(name)) for name in ("parameters", "trainable")]
    device = plain.text(network.get("device"))
    text = (
        f"{len(parts)} nodes, {counts[0]:,} parameters ({counts[1]:,} trained), {plain.text(network.get('precision'))}"
    )
    drawn = picture(parts)
    return tag(
        "div",
        tag("h3", ", ".join(names)) if several else None,
        tag("p", text, f", on {device}" if device else ""),
        tag("div", drawn, class_="scroll") if drawn is not None else _no_picture(),
        tag("details", tag("summary", "Parameters"), parameter_table(parts), data_key=f"parameters {names[0]}"),
    )


def _no_picture() -> Markup:
    return tag(
        "p", "The network has too many nodes for a picture here; `cntkpy plot --network` draws it.", class_="note"
    )
