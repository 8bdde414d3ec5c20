"""The face of cntkpy."""
