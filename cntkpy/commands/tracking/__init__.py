"""Experiment trackers: what happens in a run, sent to TensorBoard, MLflow, or what an installed package offers."""
