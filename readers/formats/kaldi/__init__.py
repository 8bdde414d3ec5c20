"""Kaldi: archives, script files, feature transforms, alignments; the readers, deserializers and writer of these."""
