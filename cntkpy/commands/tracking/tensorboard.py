"""Runs as event files of TensorBoard."""

from __future__ import annotations

from cntkpy.commands.tracking.tracker import Place
from cntkpy.trainers.log.event_files import EventFile


def tracker(place: Place) -> EventFile:
    """Return the event file of a run, which people look at while it runs."""
    return EventFile(place.target or "tensorboard", place.tags, keeps_up=True)
