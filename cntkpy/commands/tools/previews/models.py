"""Describe model files: CNTK's, ours, ONNX."""

from __future__ import annotations

from typing import Any


def describe_model(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a model: its groups of nodes, and their shapes."""
    from cntkpy.commands.tools.show_model import describe
    from cntkpy.networks.files.model_file import load_model

    model = describe(load_model(path))
    shapes = {node["name"]: " x ".join(map(str, node["shape"])) for node in model["nodes"]}
    columns = [
        {"name": group, "type": ", ".join(f"{name} ({shapes[name]})" if shapes.get(name) else name for name in names)}
        for group, names in model["groups"].items()
        if names
    ]
    return {
        "rows": len(model["nodes"]),
        "unit": "nodes",
        "columns": [*columns, {"name": "parameters", "type": f"{model['parameters']:,}, {model['precision']}"}],
        "first": [],
        "reader": f"none; it is a model: `cntkpy show {path}` shows its nodes",
    }
