"""Functions and learners that are Python code of the program."""
