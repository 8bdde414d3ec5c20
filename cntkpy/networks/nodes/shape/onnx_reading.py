"""Operators of ONNX for shapes, axes and reductions."""

from cntkpy.networks.nodes.shape import onnx_axes, onnx_reductions

RULES = {**onnx_axes.RULES, **onnx_reductions.RULES}
