"""UCI text, and its binary cache."""
