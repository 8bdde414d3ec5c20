"""What changes from epoch to epoch: rates, momentum, minibatch sizes."""
