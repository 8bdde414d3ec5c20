"""Matrix products and reductions of whole samples."""
