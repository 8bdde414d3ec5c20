"""What rules for ONNX share: the graph to be written, the network to be made of a model."""
