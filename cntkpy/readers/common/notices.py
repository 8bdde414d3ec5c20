"""Marks of the warnings of readers that are about the data themselves: `check --data` has them, too."""

ABOUT_DATA = {"about": "data"}
"""`extra` of a log record that says what is odd about data, or what of them is not read."""
ABOUT_JOINED = {"about": "joined"}
"""The same about data that belong together in several files: from their beginnings nothing follows."""
