"""The training loop: epochs, from the first or from the middle of one, and their criteria."""
