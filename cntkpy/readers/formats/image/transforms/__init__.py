"""The transforms of images, in the order of their sections."""
