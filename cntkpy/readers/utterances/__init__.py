"""Utterances: streams of features and labels by name, frame by frame or whole, in HTKMLFReader's orders.

What formats of speech share. A format says where frames and labels lie; the rest is here.
"""
