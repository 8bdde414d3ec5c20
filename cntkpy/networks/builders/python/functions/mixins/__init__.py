"""What functions are composed of: operators, values and gradients, the structure."""
