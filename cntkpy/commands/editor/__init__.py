"""Completion in shells and the language server."""
