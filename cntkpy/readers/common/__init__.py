"""Shared parts of reading: sequences in chunks, bytes of files, label maps, kernels, indexes, shuffles."""
