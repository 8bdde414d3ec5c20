"""Data from one file format to another, in pieces that fit into memory."""
