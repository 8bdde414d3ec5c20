"""`cntkpy preview FILE`: the formats of data files, and what a file holds."""
