"""ONNX models become networks: each operator becomes nodes, initialisers become parameters."""
