"""The command line: running configurations and the tools around them."""
