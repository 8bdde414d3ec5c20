"""One package per file format: its declaration, its reader, its kernels."""
