"""The training of a network as a program of PyTorch: `train.py`."""
