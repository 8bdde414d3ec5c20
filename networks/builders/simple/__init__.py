"""SimpleNetworkBuilder."""
