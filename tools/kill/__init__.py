"""Trainings that are killed at random moments: every resumed model equals that of an undisturbed run, bit for bit."""
