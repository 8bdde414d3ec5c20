"""JAX imported on first use, and sparse arrays."""
