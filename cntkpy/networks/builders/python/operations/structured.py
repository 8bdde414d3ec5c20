"""Functions as blocks, and recurrences that are closed later."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cntkpy.cntk_config.base.diagnostics import CallError, shorten
from cntkpy.networks.builders.python.functions.blocks import Block, block_of, mark_block
from cntkpy.networks.builders.python.functions.checks import check_name
from cntkpy.networks.builders.python.functions.function import Function, as_node
from cntkpy.networks.builders.python.functions.leaves import placeholder_of


def as_block(
    composite: Function,
    block_arguments_map: Mapping[Function, object] | Iterable[tuple[Function, object]],
    block_op_name: str,
    block_instance_name: str = "",
) -> Function:
    """Return a function of placeholders, applied to operands, that counts as one operation.

    Args:
        composite: the function; it shares its parameters with the block.
        block_arguments_map: pairs (placeholder, operand), or a dictionary of them.
        block_op_name: the name of the operation.
        block_instance_name: names the result; of several outputs each has its own name.

    Raises:
        UserError: a placeholder of the function is not among the pairs, or another function is.
    """
    check_name(block_op_name)
    check_name(block_instance_name)
    if not isinstance(composite, Function):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"as_block takes a function of placeholders, not {shorten(repr(composite))}"
        raise CallError("NoFunction", message, hint="as_block(f(p), [(p, x)], 'Name')")
    items: list[Any] = list(
        block_arguments_map.items() if isinstance(block_arguments_map, Mapping) else block_arguments_map
    )
    pairs: dict[Function, Function] = {placeholder: as_node(operand) for placeholder, operand in items}
    missing = [placeholder for placeholder in composite.placeholders if placeholder not in pairs]
    if missing:
        message = f"as_block: the placeholder {missing[0]!r} is not among the pairs"
        raise CallError("WrongArguments", message, hint="give [(placeholder, operand), ...] for each")
    made = composite.clone("share", pairs) if pairs else composite
    arguments = tuple(placeholder.root for placeholder in pairs)
    operands = tuple(operand.root for operand in pairs.values())
    only = made.root if len(made.roots) == 1 else None
    inner, inner_name = (None, "") if only is None else (block_of(only), Function(only).name)
    block = Block(block_op_name, operands, arguments, inner, inner_name)
    for root in made.roots:
        if root not in operands:
            mark_block(root, block)
    if len(made.roots) == 1:
        made.root.name = block_instance_name or made.root.name
    return made


def as_composite(root_function: Function, name: str = "") -> Function:
    """Return a primitive function or block, see `Function.root_function`, as a function of inputs again."""
    check_name(name)
    composite = Function(as_node(root_function).roots)
    if name:
        composite.root.name = name
    return composite


class ForwardDeclaration(Function):
    """A function that is defined later, in terms of itself: `h = step(x, f); f.resolve_to(h)`.

    Args:
        name: names the placeholder.
    """

    def __init__(self, name: str = "forward_declaration") -> None:
        super().__init__(placeholder_of(None, check_name(name)))

    def resolve_to(self, value: Function) -> None:
        """Replace the placeholder by `value`, which may depend on it."""
        as_node(value).replace_placeholders({self: as_node(value).output})


__all__ = ["ForwardDeclaration", "as_block", "as_composite"]
