"""Nodes computed by Python code of the user."""
