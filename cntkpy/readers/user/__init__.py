"""What people write themselves: the base classes of their own sources of data, and how the pipeline reads them."""
