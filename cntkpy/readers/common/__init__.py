"""What all parts of reading share: sequences in chunks, bytes of files, label maps, kernels, indexes, shuffles."""
