"""Foundation of every package: diagnostics with their places, located text, safe access to files."""
