"""Nodes that observe: traces, counters, properties of the run."""
