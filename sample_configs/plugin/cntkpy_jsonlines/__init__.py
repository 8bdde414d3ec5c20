"""JSON lines for cntkpy: a reader, a writer, and an action that counts classes."""
