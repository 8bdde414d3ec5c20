"""Training from Python: learners, the trainer, progress writers, sessions. `cntkpy.training` offers all of it."""
