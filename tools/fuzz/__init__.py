"""Mutated inputs for every reader of files: nothing may end in a traceback, a crash, a hang or a flood of memory."""
