"""Operators of ONNX for images."""

from cntkpy.networks.nodes.images import onnx_images, onnx_resizing

RULES = {**onnx_images.RULES, **onnx_resizing.RULES}
