"""What looks on while a network trains: traces, checks of gradients and of numbers."""
