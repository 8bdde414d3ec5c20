"""Support for the rules for source: values as expressions, the lines of a function, names, helpers."""
