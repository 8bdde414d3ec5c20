"""Errors in the data itself (a bad value in the configuration is a ConfigError)."""

from __future__ import annotations

from cntk_config.diagnostics import UserError


class DataError(UserError, RuntimeError):
    """A file cannot be read as its reader section says. Exit code 1; the message names the place in the file.

    Also a RuntimeError, which is what the original's Python interface raised.
    """

    exit_code = 1

    def __init__(self, message: str, *, path: str | None = None, line: int | None = None, hint: str | None = None):
        super().__init__(message, hint=hint, kind="DataError")
        self.path, self.line = path, line
