"""The operations that `new ComputationNode [ operation = '...' ]` can make, each with the attributes that it looks up.

They follow from the kinds of nodes (`cntkpy.networks.nodes`): an attribute for each scalar argument and each option.
Where BrainScript differs, the kind's `record` says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from cntkpy.networks import nodes
from cntkpy.networks.graph.node import NODE, REQUIRED, NodeKind, RecordForm


class Attribute(NamedTuple):
    """One attribute of an operation.

    Args:
        name: its name in BrainScript.
        option: the name of the node's option.
        type: how its value is read; types of several values take a number or an array, nested or not.
        default: the value when no name is found; REQUIRED if it must be there.
    """

    name: str
    option: str
    type: str
    default: Any = REQUIRED


class Operation(NamedTuple):
    """One operation.

    Args:
        name: as a program writes it.
        node_kind: the node's kind in `cntkpy.networks.nodes`, if it has another name.
        attributes: what it looks up, in the order of evaluation.
        later: its inputs are evaluated after all members of the network.
        nodes_only: a number among its inputs does not become a constant.
        shape: "" for a node whose shape follows from its inputs; "input", "parameter" for those that have their own.
        leaf: it has no inputs.
    """

    name: str
    node_kind: str = ""
    attributes: tuple[Attribute, ...] = ()
    later: bool = False
    nodes_only: bool = False
    shape: str = ""
    leaf: bool = False

    @property
    def kind_name(self) -> str:
        """The node's kind."""
        return self.node_kind or self.name


def _attributes(kind: NodeKind, form: RecordForm) -> Iterator[Attribute]:
    declared = {a.name: (a.type, None) for signature in kind.signatures for a in signature if a.type != NODE}
    if kind.layout == "always":  # the shape of an input is no option
        declared = {}
    declared |= {option.name: (option.type, option.default) for option in kind.options}
    for option, (type_, default) in declared.items():
        if option not in form.without:
            default = default if option in form.optional else REQUIRED
            yield Attribute(form.names.get(option, option), option, form.types.get(option, type_), default)


def operations_of(kinds: Iterable[NodeKind]) -> Iterator[Operation]:
    """Yield the operations that make nodes of some kinds."""
    for kind in kinds:
        form = kind.record
        if kind.unsupported:
            yield from (Operation(name, kind.name) for name in kind.names)
        elif form is not None and kind.makes is None:
            yield Operation(
                form.operation or kind.printed or kind.name,
                kind.name,
                () if kind.parameter else tuple(_attributes(kind, form)),
                later=kind.time.delay != 0,
                nodes_only=form.nodes_only,
                shape="parameter" if kind.parameter else "input" if kind.layout == "always" else "",
                leaf=kind.arity()[1] == 0,
            )


@cache
def _declared(module: str) -> dict[str, Operation]:
    return {operation.name: operation for operation in operations_of(nodes.declared(module))}


class _Operations(Mapping[str, Operation]):
    """The operations by name. What declares one is imported when it is asked for."""

    def __getitem__(self, name: str) -> Operation:
        return _declared(nodes.operations()[name])[name]

    def __iter__(self) -> Iterator[str]:
        return iter(nodes.operations())

    def __len__(self) -> int:
        return len(nodes.operations())


OPERATIONS: Mapping[str, Operation] = _Operations()
