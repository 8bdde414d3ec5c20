"""The syntax of the program's own files, which several tests look at: a process parses each file once."""

import ast
import functools


@functools.cache
def imports_and_calls(text: str) -> list[ast.Import | ast.ImportFrom | ast.Call]:
    """Those of a program, wherever they stand in it."""
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)]
