"""The model editing language (MEL)."""
