"""Runs that are over or still going: read from their event files and logs, listed, compared."""
