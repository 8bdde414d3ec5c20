"""What the declarations of node kinds are written with."""

from __future__ import annotations

from networks.graph.node import (
    BOOLEAN,
    BOOLEANS,
    INTEGER,
    INTEGERS,
    NODE,
    PATH,
    REAL,
    TEXT,
    Argument,
    NodeKind,
    Option,
    Signature,
    shown,
)

__all__ = [
    "BOOLEAN",
    "BOOLEANS",
    "INTEGER",
    "INTEGERS",
    "NODE",
    "PATH",
    "REAL",
    "TEXT",
    "Argument",
    "NodeKind",
    "Option",
    "Signature",
    "inputs",
    "shown",
]


def inputs(*names: str) -> Signature:
    """A signature of input nodes only."""
    return tuple(Argument(name) for name in names)
