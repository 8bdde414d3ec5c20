"""`Function`: nodes of a network under construction, what they depend on, and their values."""
