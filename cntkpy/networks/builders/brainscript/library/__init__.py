"""Layers, numbers and namespaces that every program sees: `core.bs`, written in BrainScript."""
