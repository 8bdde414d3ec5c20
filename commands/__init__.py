"""The command line: running configurations and the tools around them."""

__version__ = "0.1.0"
