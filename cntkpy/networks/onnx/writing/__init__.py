"""The rules by which nodes become operators of ONNX."""
