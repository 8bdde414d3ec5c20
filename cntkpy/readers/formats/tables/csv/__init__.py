"""CSV files as tables, by pyarrow."""
