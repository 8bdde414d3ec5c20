"""Networks made by Python programs: BrainScript's library of layers and operators, called from Python.

A `Function` is a value of that library with Python's operators; `graph` makes a network of functions.
"""
