"""Builders of networks from configuration sections."""
