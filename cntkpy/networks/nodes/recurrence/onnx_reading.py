"""Recurrent operators and loops of ONNX."""

from cntkpy.networks.nodes.recurrence import onnx_loops, onnx_units

RULES = {**onnx_units.RULES, **onnx_loops.RULES}
