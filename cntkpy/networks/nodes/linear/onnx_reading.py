"""Operators of ONNX for products, those of integers and of linear models included."""

from cntkpy.networks.nodes.linear import onnx_classical, onnx_matrices, onnx_quantised

RULES = {**onnx_matrices.RULES, **onnx_quantised.RULES, **onnx_classical.RULES}
