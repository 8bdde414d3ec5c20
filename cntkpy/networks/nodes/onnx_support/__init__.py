"""Support for the rules for ONNX: the graph to be written, the network to be made of a model."""
