"""Schedules over epochs: rates, momentum, minibatch sizes."""
