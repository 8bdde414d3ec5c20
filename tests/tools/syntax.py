"""The syntax of the program's own files, which several tests look at: a process parses each file once."""

import ast
import functools


@functools.cache
def nodes_of(text: str) -> list[ast.AST]:
    """Return the nodes of a program in the order of `ast.walk`, which takes twice as long; without their contexts."""
    nodes: list[ast.AST] = [ast.parse(text)]
    for node in nodes:
        for value in node.__dict__.values():
            if isinstance(value, list):
                nodes += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                nodes.append(value)
    return nodes


@functools.cache
def imports_and_calls(text: str) -> list[ast.Import | ast.ImportFrom | ast.Call]:
    """Those of a program, wherever they stand in it."""
    return [node for node in nodes_of(text) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)]
