"""What makes networks from configuration sections."""
