"""Base classes of functions: operators, values and gradients, structure."""
