"""CNTK binary format (CBF): chunks of sequences with a directory at the end."""
