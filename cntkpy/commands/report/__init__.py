"""`cntkpy report`: runs as one HTML file that needs no network."""
