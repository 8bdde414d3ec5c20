"""Delays, loops and stacks of recurrent layers."""
