"""Arguments of calls of functions, and functions in the place of placeholders."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten, suggestion
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.axes import axis_name, is_batch
from cntkpy.networks.builders.python.functions.blocks import keep_block
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.graph import Model
from cntkpy.networks.builders.python.functions.leaves import data_input
from cntkpy.networks.builders.python.functions.mixins.values import Valued
from cntkpy.networks.builders.python.functions.nodes import Input
from cntkpy.networks.builders.python.functions.per_sample import keep_criterion
from cntkpy.networks.builders.python.functions.recipes import placeholders_replaced


class Called(Valued):
    """A function that is called with other functions, or with data."""

    _model: Model | None
    _hash: int

    @property
    def placeholders(self) -> tuple[Any, ...]:
        """The inputs that are not known yet."""
        raise NotImplementedError

    @property
    def data_arguments(self) -> tuple[Any, ...]:
        """The inputs of data that it depends on."""
        raise NotImplementedError

    def _node(self, value: object) -> NodeValue:
        """Return the node of a function, an array or a number."""
        raise NotImplementedError

    @property
    def signature(self) -> tuple[Any, ...]:
        """The inputs that a call of it takes, in their order: placeholders, then inputs."""
        return self.placeholders + self.data_arguments

    def argument_map(self, *arguments: object, **named: object) -> dict[Any, object]:
        """By input, what a call with these arguments gives it.

        Raises:
            UserError: there are too many, or an input of that name does not exist.
        """
        signature = self.signature
        if len(arguments) > len(signature):
            raise CallError("WrongArguments", f"{len(arguments)} arguments for a function of {len(signature)} inputs")
        by_input: dict[Any, Any] = dict(zip(signature, arguments, strict=False))
        for name, value in named.items():
            match = next((function for function in signature if function.name == name), None)
            if match is None:
                hint = suggestion(name, [function.name for function in signature])
                raise CallError("UnknownArgument", f"the function has no input '{name}'", hint=hint)
            by_input[match] = value
        return by_input

    def update_signature(self, *types: object, **named: object) -> None:
        """Put inputs in the place of placeholders: the function has values, and its parameters shapes.

        The inputs have the precision of what they meet.

        Args:
            types: for each placeholder a shape, a type (`Tensor[10]`, `Sequence[Tensor[10]]`), or a function like it.
            named: the same by the names of placeholders.
        """
        by_placeholder = self.argument_map(*types, **named)
        wrong = next((placeholder for placeholder in by_placeholder if not placeholder.is_placeholder), None)
        if wrong is not None:
            raise CallError("WrongArguments", f"{wrong!r} is not a placeholder: it has a shape already")
        self.replace_placeholders(
            {placeholder: self._of(input_like(kind, placeholder.name)) for placeholder, kind in by_placeholder.items()}
        )

    declare_args = update_signature

    def replace_placeholders(self, substitutions: Mapping[Any, object]) -> Self:
        """Put inputs in the place of the placeholders of this function; an input may be the function itself.

        Returns:
            The function.

        Raises:
            UserError: something that is not a placeholder would be replaced.
        """
        order = self._all()
        new = self._replaced(substitutions, order)
        for key in substitutions:
            if not key.is_placeholder:
                message = f"{key!r} is not a placeholder"
                raise CallError("WrongArguments", message, hint="clone('share', {function: other}) replaces any part")
        for node in order:
            if calls.inputs_of(node):
                node.inputs = tuple(new.get(source, source) for source in calls.inputs_of(node))
            keep_criterion(node, node, new)
            keep_block(node, node, new)
        placeholders_replaced()
        self.roots = tuple(new.get(root, root) for root in self.roots)
        self._model, self._hash = None, hash(self.roots)
        return self

    def replace_placeholder(self, substitution: object) -> Self:
        """Put an input in the place of the only placeholder of this function.

        Args:
            substitution: the input, or another function.

        Returns:
            The function.

        Raises:
            UserError: it has none, or several.
        """
        placeholders = self.placeholders
        if len(placeholders) != 1:
            message = f"replace_placeholder: {self!r} has {len(placeholders)} placeholders, not one"
            hint = "replace_placeholders({placeholder: input, ...}) says which" if placeholders else ""
            raise CallError("WrongArguments", message, hint=hint)
        return self.replace_placeholders({placeholders[0]: substitution})

    def _replaced(self, substitutions: object, order: Sequence[NodeValue]) -> dict[NodeValue, NodeValue]:
        """Return the replacement of each substituted node.

        Raises:
            UserError: it is not a mapping of functions, or one of them is not a part of the function.
        """
        if not isinstance(substitutions, Mapping):
            message = f"substitutions are a dictionary {{function: other}}, not {shorten(repr(substitutions))}"
            raise CallError("WrongArguments", message)
        pairs: Mapping[Any, Any] = substitutions
        for key in pairs:
            if not isinstance(key, Called):
                raise CallError("NoFunction", f"{shorten(repr(key))} is not a function that could be replaced")
            if key.root not in order:
                message = f"{key!r} is not a part of the function, so nothing can be in its place"
                raise UserError("NoNode", message, hint="find_by_name finds its parts, .arguments are its inputs")
        return {key.root: self._node(value) for key, value in pairs.items()}


def input_like(kind: object, name: str) -> NodeValue:
    """Return an input of a shape, of a type, or like a function."""
    form: Any = getattr(kind, "type", kind) if isinstance(kind, Called) else kind
    shape, sparse, axes = form, False, ()
    if hasattr(form, "keys"):
        shape, sparse, axes = form["shape"], form["is_sparse"], form["dynamic_axes"]
    sequences = [axis_name(axis) for axis in axes if not is_batch(axis)]
    node = data_input(shape, None, sparse, name, Input(bool(sequences), sequences[0] if sequences else ""))
    cell_of(node).dtype = None
    return node
