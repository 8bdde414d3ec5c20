"""What actions and the runner have in common: the top level, the device, progress, signals."""
