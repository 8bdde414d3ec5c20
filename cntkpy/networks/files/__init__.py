"""Model files: our own format and CNTK's."""
