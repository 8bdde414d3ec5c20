"""The network description language (NDL)."""
