"""Programs for working on cntkpy; not part of the distribution."""
