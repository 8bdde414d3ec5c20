"""Functions of programs have no tensor code."""

REFUSED = {"UserFunction": "it calls a function of a Python program"}
