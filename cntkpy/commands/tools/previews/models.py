"""Describe model files: CNTK's, ours, ONNX."""

from __future__ import annotations

from typing import Any

from .texts import description


def describe_model(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a model: its groups of nodes, and their shapes."""
    from cntkpy.commands.tools.show_model import describe
    from cntkpy.networks.files.model_file import load_model

    model = describe(load_model(path))
    shapes = {node["name"]: " x ".join(map(str, node["shape"])) for node in model["nodes"]}
    columns = [
        (group, ", ".join(f"{name} ({shapes[name]})" if shapes.get(name) else name for name in names))
        for group, names in model["groups"].items()
        if names
    ]
    columns.append(("parameters", f"{model['parameters']:,}, {model['precision']}"))
    reader = f"none; it is a model: `cntkpy show {path}` shows its nodes"
    return description(reader, columns, rows=len(model["nodes"]), unit="nodes")
