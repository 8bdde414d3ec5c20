"""Base classes of user-defined data sources, and their adapters to the pipeline."""
