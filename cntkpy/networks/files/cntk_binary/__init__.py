"""Model files of CNTK: read, never written.

`v1` and `v2` turn the bytes of the two formats into `records`, `build` makes a network of them, `load` opens files.
"""
