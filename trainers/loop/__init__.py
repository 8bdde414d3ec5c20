"""The training loop: epochs, batches, the compiled step."""
