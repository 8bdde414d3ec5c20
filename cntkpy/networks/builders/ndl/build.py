"""Expanded NDL calls -> nodes of a network. What a function takes is known only from its declaration (`NodeKind`)."""

from __future__ import annotations

from collections.abc import Mapping

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, suggestion
from cntkpy.networks import nodes
from cntkpy.networks.builders.ndl.arguments import Arguments, matched, signature_of
from cntkpy.networks.builders.ndl.groups import ARRAYS
from cntkpy.networks.builders.ndl.parse import Macro, Word
from cntkpy.networks.builders.ndl.scope import (
    MAX_STEPS,
    Constant,
    DependsOnFailed,
    Expansion,
    Instance,
    NodeCall,
    Reference,
    Scope,
    Value,
    Values,
    followed,
)
from cntkpy.networks.builders.ndl.text import Place, error, warning
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network, Node
from cntkpy.networks.nodes import NodeKind
from cntkpy.networks.nodes.declare import NODE

INPUTS = ("InputValue", "SparseInputValue")


class Builder:
    """Adds the nodes of an expansion to a network and connects them. An expansion may grow between the steps.

    Args:
        network: may hold nodes already (in-line NDL of model editing); inputs of the same name are used again.
        expansion: what to build.
        macros: the macros, whose names stand for no node.
        strict: an option that a function does not know is an error among the expansion's warnings.
    """

    def __init__(
        self, network: Network, expansion: Expansion, macros: Mapping[str, Macro], strict: bool = False
    ) -> None:
        self.network = network
        self.expansion = expansion
        self.macros = macros
        self._arguments = Arguments(expansion, strict)
        self.made: dict[NodeCall, Node] = {}
        self.failed: set[Node] = set()
        """Nodes without some of their inputs, which are wrong."""
        self._names: dict[NodeCall, str] = {}
        self._unconnected: list[NodeCall] = []
        self._uninitialised: list[NodeCall] = []
        self._position = 0
        self._tags = 0
        self._arrays = 0

    def create(self) -> None:
        """Make the nodes of the calls added since the last time, under their final names."""
        added = self.expansion.created[self._position :]
        self._position = len(self.expansion.created)
        taken = {part for name in self.network.nodes for part in name.lower().split(".")}
        self.expansion.name_unnamed(added, taken)
        for call, old in self._names.items():
            node = self.made[call]
            if call.name != old and self.network.nodes.get(node.name) is node:
                self.network.rename(node.name, call.name)
                self._names[call] = call.name
        for item in added:
            if isinstance(item, NodeCall):
                try:
                    self._create(item)
                except ConfigError as problem:
                    self.expansion.note(problem)
                except DependsOnFailed:
                    continue

    def connect(self) -> None:
        """Attach inputs and fill the groups."""
        for call in self._unconnected:
            self._connect(call)
        self._unconnected.clear()
        self._group()

    def initialise(self, seeds: SeedCounter) -> None:
        """Give the parameters their seeds, in the order of creation, and values where the shape is complete."""
        for call in self._uninitialised:
            try:
                self.network.initialize(self.made[call], seeds)
            except UserError as problem:
                raise located(problem, call.call.place) from None
            except MemoryError:
                shape = shapes.text(self.made[call].shape or ())
                message = f"there is not enough memory for the parameter '{call.name}' {shape}"
                raise UserError("TooLarge", message, call.call.place.span) from None
        self._uninitialised.clear()

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _create(self, call: NodeCall) -> None:
        function, place = call.call.function, call.call.place
        kind = nodes.find(function.text)
        if kind is None or kind.unsupported:
            raise unsupported(function, kind)
        options = self._arguments.scalars(kind, call)
        name = call.name
        old = self.network.nodes.get(name)
        if old is not None and kind.operation in INPUTS and old.operation in INPUTS and old not in self.made.values():
            self.made[call] = old  # in-line NDL that names an input of the network
            replacement = nodes.create(Network(self.network.precision), kind, name, (), options, span=place.span)
            there, here = old.shape or (), replacement.shape or ()
            if shapes.trimmed(there) != shapes.trimmed(here):
                message = f"the model has an input '{old.name}' {shapes.text(there)}; {shapes.text(here)} has no effect"
                self.expansion.warnings.append(warning("Redefinition", message, place))
            return
        if old is not None:
            message = f"duplicated name: there is already a node '{old.name}'"
            note = (f"defined before at {old.span}",) if old.span else ()
            raise error("Redefinition", message, place, notes=note)
        try:
            node = nodes.create(self.network, kind, name, (), options, span=place.span)
        except ConfigError:
            raise
        except UserError as problem:
            raise located(problem, place) from None
        self.made[call] = node
        self._names[call] = name
        self._unconnected.append(call)
        self._uninitialised.append(call)

    # -- links and groups --------------------------------------------------------------------------------------------

    def _connect(self, call: NodeCall) -> None:
        kind = nodes.find(call.call.function.text)
        assert kind is not None
        signature = signature_of(kind, call)
        node = self.made[call]
        node.inputs = []
        for argument, operands in matched(signature, call):
            for value, _ in operands if argument.type == NODE else ():
                try:
                    node.inputs.append(self._node(value, call))
                except ConfigError as problem:
                    self.failed.add(node)
                    self.expansion.note(problem)
                except DependsOnFailed:
                    self.failed.add(node)

    def _node(self, value: Value, user: NodeCall | None, place: Place | None = None, group: str = "") -> Node:
        """Return the node that an argument or a member of a group stands for."""
        original = value
        article = "an" if group.startswith(("e", "o")) else "a"
        where = f" in '{user.call.place.one_line}'" if user else f" as {article} {group} node"
        for _ in range(MAX_STEPS):
            value = followed(value)
            if not isinstance(value, Instance):
                break
            if value.result is None:
                if value.scope.lost:
                    raise DependsOnFailed
                message = f"the macro '{value.macro.name.text}' has no node that '{value.local}' could stand for{where}"
                raise error("UndefinedNode", message, place or value.call.place)
            value = value.result
        if isinstance(value, NodeCall):
            if value not in self.made:
                raise DependsOnFailed
            return self.made[value]
        if isinstance(value, Constant):
            constant = original if isinstance(original, Constant | Reference) else value
            message = f"{constant.shown} is a number, a node is expected{where}"
            hint = f"write Constant({value.word.text})" if user else None
            raise error("UndefinedNode", message, constant.place, hint)
        if isinstance(value, Values):
            problem = f"an array cannot be an input of {user.call.function.text}" if user else "an array is not a node"
            raise error("InvalidArgument", f"{problem}{where}", value.place)
        assert isinstance(value, Reference)
        if value.word.text in self.network.nodes:
            return self.network.nodes[value.word.text]
        self.expansion.require_known(value.word, value.scope)
        value.scope.find(value.word, strict=True)  # what is in front of a dot may be no macro
        hint = self._suggest(value.word, value.scope)
        if macro := self.macros.get(value.word.text.lower()):
            parameters = ", ".join(parameter.text for parameter in macro.parameters)
            hint = f"it is a macro, which has to be called: {macro.name.text}({parameters})"
        problem = "the parameter name could not be resolved" if user else "invalid node"
        raise error("UndefinedNode", f"{problem}: '{value.word.text}'{where}", value.word.place, hint)

    def _member(self, value: Value, place: Place, group: str) -> Node | None:
        """Return a node of a group; None where it is wrong and errors are collected."""
        try:
            return self._node(value, None, place, group)
        except ConfigError as problem:
            self.expansion.note(problem)
        except DependsOnFailed:
            pass
        return None

    def _suggest(self, word: Word, scope: Scope) -> str | None:
        names = [symbol.name.text for symbol in scope.symbols.values()]
        return suggestion(word.text, [*names, *self.network.nodes])

    def _group(self) -> None:
        for group, value, place in self.expansion.tags[self._tags :]:
            if (node := self._member(value, place, group)) is not None:
                self.network.add_to_group(group, node)
        arrays = self.expansion.arrays[self._arrays :]
        self._tags, self._arrays = len(self.expansion.tags), len(self.expansion.arrays)
        order = list(ARRAYS)
        for array, value, place in sorted(arrays, key=lambda pair: order.index(pair[0])):
            group = ARRAYS[array]
            for item in value.items if isinstance(value, Values) else (value,):
                node = self._member(item, place, group)
                if node is None:
                    continue
                self.network.add_to_group(group, node)
                if node.name.lower() == array and node.operation in INPUTS:
                    message = f"the input is now called '{node.name}', and so must be the reader's stream"
                    hint = f"{node.name} = ({place.text}) keeps its name"
                    self.expansion.warnings.append(warning("RenamedInput", message, place, hint))


def unsupported(function: Word, kind: NodeKind | None) -> ConfigError:
    """Return the error for a function that cannot be made."""
    if kind is None:
        return error("UndefinedFunction", f"undefined function or macro '{function.text}'", function.place)
    return error("Unsupported", f"{function.text} is not supported", function.place, hint=kind.unsupported)


def located(problem: UserError, place: Place) -> ConfigError:
    """Return an error of the node library as an error of the script."""
    diagnostic = problem.diagnostic
    return ConfigError("BadValue", diagnostic.message, diagnostic.span or place.span, diagnostic.hint, diagnostic.notes)
