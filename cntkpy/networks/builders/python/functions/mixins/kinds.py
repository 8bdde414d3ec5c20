"""Kinds of functions: data, a parameter, a constant, a placeholder, or a result."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions.blocks import has_sparse_value
from cntkpy.networks.builders.python.functions.mixins.structure import Structure
from cntkpy.networks.builders.python.functions.nodes import (
    INPUTS,
    DataAxes,
    has_value,
    is_loaded_input,
    is_trained,
    ordered,
)


class Kinds(Structure):
    """The kind of a function."""

    @property
    def root(self) -> NodeValue:
        """Its only node."""
        raise NotImplementedError

    def _all(self) -> list[NodeValue]:
        """Return the nodes that it depends on, and its own."""
        raise NotImplementedError

    @property
    def is_leaf(self) -> bool:
        """Return whether it is an input, a parameter or a constant."""
        return self.is_input or self.is_parameter or self.is_constant

    @property
    def is_input(self) -> bool:
        """Return whether it stands for data."""
        return len(self.roots) == 1 and (self.root in INPUTS or is_loaded_input(self.root))

    @property
    def is_parameter(self) -> bool:
        """Return whether training changes it."""
        return len(self.roots) == 1 and is_trained(self.root)

    @property
    def is_placeholder(self) -> bool:
        """Return whether it stands for an input that is not known yet."""
        return len(self.roots) == 1 and self._resolved.operation.name == "Placeholder"

    @property
    def data_axes(self) -> DataAxes | None:
        """The axes that its data have; None of what is not an input."""
        if not self.is_input:
            return None
        shape = tuple(reversed(self.root.shape or ()))
        kind = INPUTS.get(self.root)
        if kind is None:
            return DataAxes(shape, None, self.is_sparse)
        dynamic = 0 if kind.static else 2 if kind.sequence else 1
        return DataAxes(shape, dynamic, self.is_sparse)

    @property
    def is_constant(self) -> bool:
        """Return whether it has a value that training does not change."""
        return len(self.roots) == 1 and has_value(self.root) and not self.is_parameter

    @property
    def is_sparse(self) -> bool:
        """Return whether it is an input of sparse data, or its value comes as sparse matrices."""
        return (self.is_input and "Sparse" in self._resolved.operation.name) or any(map(has_sparse_value, self.roots))

    @property
    def is_sequence(self) -> bool:
        """Return whether it is an input whose samples come in sequences."""
        return self.root in INPUTS and INPUTS[self.root].sequence

    @property
    def is_output(self) -> bool:
        """Return whether it is computed from others."""
        return not (self.is_leaf or self.is_placeholder)

    @property
    def needs_gradient(self) -> bool:
        """Return whether it is computed from a parameter, or from an input that was said to need a gradient."""
        order = ordered(self.roots, {node for node in self._all() if node.operation.name == "StopGradient"})
        return any(is_trained(node) or (node in INPUTS and INPUTS[node].needs_gradient) for node in order)
