"""Networks as ONNX models: a network becomes a graph of ONNX operators, which the package `onnx` turns into a file."""
