"""What is wrong with a configuration, found without running anything."""
