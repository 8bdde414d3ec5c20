"""Find problems of a configuration without running anything."""
