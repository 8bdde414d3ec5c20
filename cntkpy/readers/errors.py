"""Errors in the data itself, and in what a program asks for (a bad value in a configuration is a ConfigError)."""

from __future__ import annotations

from cntkpy.cntk_config.base.diagnostics import CallError, Hint, UserError


class DataError(UserError):
    """A file cannot be read as its reader section says. Exit code 1; the message names the place in the file."""

    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        hint: Hint = None,
        notes: tuple[str, ...] = (),
    ):
        super().__init__("DataError", message, hint=hint, notes=notes)
        self.path, self.line = path, line


class ArgumentError(CallError):
    """A program asks for something that cannot be, or its own class answers nonsense. Exit code 1."""

    exit_code = 1

    def __init__(self, message: str, hint: Hint = None, notes: tuple[str, ...] = (), kind: str = "ArgumentError"):
        super().__init__(kind, message, hint=hint, notes=notes)
