"""What every package stands on: diagnostics with their places, located text, safe access to files."""
