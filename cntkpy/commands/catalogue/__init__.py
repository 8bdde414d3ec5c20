"""Everything users name, and which part of the program reads which section."""
