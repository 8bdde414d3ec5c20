"""What several formats share: bytes of files, label maps, kernels for numbers, indexes and shuffles."""
