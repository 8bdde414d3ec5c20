"""`cntkpy new config`: a configuration that trains on a table."""
