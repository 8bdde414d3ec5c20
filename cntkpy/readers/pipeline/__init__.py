"""The stages of reading: order, load, transform, pack, minibatch."""
