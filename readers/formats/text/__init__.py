"""CNTK text format (CTF)."""
