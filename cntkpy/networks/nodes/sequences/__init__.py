"""Steps of sequences and time axes."""
