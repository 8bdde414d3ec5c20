"""By this module cntkpy knows its own package `cntk`."""
