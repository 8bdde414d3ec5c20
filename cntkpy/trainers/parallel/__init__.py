"""Several workers: process group, communicator, strategies."""
