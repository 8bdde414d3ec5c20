"""CNTK's binary files (BinaryReader, BinaryWriter)."""
