"""Sentences for language models and tagging (SequenceReader, LUSequenceReader)."""
