"""Names that CNTK has and cntkpy does not support."""
