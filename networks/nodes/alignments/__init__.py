"""Criteria that compare sequences as a whole, whose steps have no fixed partners."""
