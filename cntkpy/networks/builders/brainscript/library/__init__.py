"""The functions that every program sees: `core.bs` beside this file, written in BrainScript."""
