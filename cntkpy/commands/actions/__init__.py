"""One file per action of a configuration."""
