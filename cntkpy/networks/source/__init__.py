"""Networks as source: a module of PyTorch with its weights, which needs nothing of this package."""
