"""Context shared by actions and the runner: the top level, the device, progress, signals."""
