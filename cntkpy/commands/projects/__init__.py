"""The project file `cntkpy.toml`: which files make a run, and what `check` leaves out."""
