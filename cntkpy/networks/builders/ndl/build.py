"""Expanded NDL calls -> nodes of a network. What a function takes is known only from its declaration (`NodeKind`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, suggestion
from cntkpy.networks import nodes
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
from cntkpy.networks.nodes.declare import (
    BOOLEAN,
    BOOLEANS,
    INTEGER,
    INTEGERS,
    NODE,
    PATH,
    REAL,
    TEXT,
    Argument,
    Signature,
)

INTEGER_TEXT = re.compile(r"[+-]?[0-9]{1,18}")
REAL_TEXT = re.compile(
    r"([+-]?)(?:(0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)?)|((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?))(#[iI][nN][fF])?"
)
INFINITY = re.compile(r"([+-]?)(inf|infinity|#inf|nan)", re.IGNORECASE)
BOOLEANS_TEXT = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE", ""), False),
}
INPUTS = ("InputValue", "SparseInputValue")
ELEMENT = {INTEGERS: INTEGER, BOOLEANS: BOOLEAN}


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
        self.strict = strict
        self.made: dict[NodeCall, Node] = {}
        self.failed: set[Node] = set()
        """Nodes without some of their inputs, which are wrong."""
        self._names: dict[NodeCall, str] = {}
        self._unconnected: list[NodeCall] = []
        self._uninitialised: list[NodeCall] = []
        self._counter = 0
        self._position = 0
        self._tags = 0
        self._arrays = 0
        self._warned: set[tuple[str, str]] = set()

    def create(self) -> None:
        """Make the nodes of the calls added since the last time, under their final names."""
        added = self.expansion.created[self._position :]
        self._position = len(self.expansion.created)
        self._name_unnamed(added)
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

    def _name_unnamed(self, added: list[NodeCall | Instance]) -> None:
        """Number the calls that have no name: `unnamed1`, `unnamed2`, ... in the order of creation."""
        unnamed = [item for item in added if item.local is None]
        if not unnamed:
            return
        taken = {name for scope in self.expansion.scopes for name in scope.symbols}
        taken.update(part for name in self.network.nodes for part in name.lower().split("."))
        for item in unnamed:
            self._counter += 1
            while f"unnamed{self._counter}" in taken:
                self._counter += 1
            item.local = f"unnamed{self._counter}"

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _create(self, call: NodeCall) -> None:
        function, place = call.call.function, call.call.place
        kind = nodes.find(function.text)
        if kind is None or kind.unsupported:
            raise unsupported(function, kind)
        signature = self._signature(kind, call)
        options: dict[str, Any] = {}
        for argument, arguments in _matched(signature, call):
            if argument.type == NODE:
                continue
            where = f"'{argument.name}' of {function.text}"
            values = [self._convert(value, argument.type, where, argument.choices, place) for value, place in arguments]
            options[argument.name] = tuple(values) if argument.many else values[0]
        options.update(self._options(kind, call))
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

    def _signature(self, kind: NodeKind, call: NodeCall) -> Signature:
        """The form of the function that fits the positional arguments."""
        count = len(call.arguments)
        fitting = [s for s in kind.signatures if count == len(s) or (s and s[-1].many and count > len(s))]
        for signature in fitting:  # of several, the one that takes numbers where numbers are
            pairs = zip(signature, call.arguments, strict=False)
            if len(fitting) == 1 or all(isinstance(followed(v), Constant) == (a.type != NODE) for a, v in pairs):
                return signature
        if fitting:
            return fitting[0]
        function = call.call.function.text
        counts = sorted({f"{len(s)} or more" if s and s[-1].many else str(len(s)) for s in kind.signatures})
        expected = " or ".join(counts)
        if all(argument.type == NODE for signature in kind.signatures for argument in signature):
            message = (
                f"{function} '{call.name}' expects {expected} input{'' if expected == '1' else 's'}, {count} given"
            )
        else:
            message = (
                f"{function} expects {expected} positional argument{'' if expected == '1' else 's'}, {count} given"
            )
        message += f" in '{call.call.place.one_line}'"
        raise error("FunctionArguments", message, call.call.place, hint=f"usage: {kind.usage()}")

    def _options(self, kind: NodeKind, call: NodeCall) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for option, value in call.options:
            declared = kind.option(option.name.text)
            if declared is None:
                self._unknown_option(kind, call, option.name)
            elif declared.name not in result:  # the first one wins
                where = f"the option '{declared.name}' of {call.call.function.text}"
                place = option.value.place
                if declared.ignored and self.strict:
                    message = f"{where} has no effect"
                    self.expansion.warnings.append(
                        error("IgnoredParameter", message, place, declared.ignored).diagnostic
                    )
                result[declared.name] = self._convert(value, declared.type, where, declared.choices, place)
        return result

    def _unknown_option(self, kind: NodeKind, call: NodeCall, name: Word) -> None:
        message = f"{call.call.function.text} has no option '{name.text}'; it is ignored"
        hint = kind.elsewhere.get(name.text.lower()) or suggestion(
            name.text, ["tag", *(o.name for o in kind.options), *(a for o in kind.options for a in o.aliases)]
        )
        if self.strict:
            diagnostic = error("IgnoredOption", message.removesuffix("; it is ignored"), name.place, hint).diagnostic
            self.expansion.warnings.append(diagnostic)
            return
        key = (kind.name, name.text.lower())
        if key not in self._warned:
            self._warned.add(key)
            self.expansion.warnings.append(warning("IgnoredOption", message, name.place, hint))

    # -- scalars -----------------------------------------------------------------------------------------------------

    def _convert(self, value: Value, type_: str, where: str, choices: tuple[str, ...], place: Place) -> Any:
        """A value as the declared type."""
        if type_ in ELEMENT:
            items = value.items if isinstance(value, Values) else (value,)
            return tuple(self._convert(item, ELEMENT[type_], where, (), place) for item in items)
        if isinstance(value, Constant | Reference):
            if isinstance(value, Reference) and type_ not in (TEXT, PATH, BOOLEAN) and not choices:
                self.expansion.require_known(value.word, value.scope)
            return convert_word(value, type_, where, choices)
        if isinstance(value, Values):
            raise error("BadValue", f"{where} takes one value, not an array", value.place)
        word = value.call.place
        subject = f"'{value.local or word.one_line}'"
        message = f"scalar expected for {where}: {subject} is a node, it must be a number or a constant"
        raise error("ConstantExpected", message, place)

    # -- links and groups --------------------------------------------------------------------------------------------

    def _connect(self, call: NodeCall) -> None:
        kind = nodes.find(call.call.function.text)
        assert kind is not None
        signature = self._signature(kind, call)
        node = self.made[call]
        node.inputs = []
        for argument, operands in _matched(signature, call):
            for value, _ in operands if argument.type == NODE else ():
                try:
                    node.inputs.append(self._node(value, call))
                except ConfigError as problem:
                    self.failed.add(node)
                    self.expansion.note(problem)
                except DependsOnFailed:
                    self.failed.add(node)

    def _node(self, value: Value, user: NodeCall | None, place: Place | None = None, group: str = "") -> Node:
        """The node that an argument or a member of a group stands for."""
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


def convert_word(value: Constant | Reference, type_: str, where: str, choices: tuple[str, ...] = ()) -> Any:
    """A number or a text as the declared type; a name that stands for no constant is a text."""
    word = value.word
    text = word.text
    if choices:
        for choice in choices:
            if choice.lower() == text.lower():
                return choice
        message = f"{value.shown} is not a value of {where}; permitted: {', '.join(choices)}"
        hint = suggestion(text, choices)
        if text.lower() == "none" and "zero" in choices:
            hint = "write init=zero for zeros, or leave init out"
        raise error("BadValue", message, value.place, hint)
    if type_ in (TEXT, PATH):
        return text
    if type_ == BOOLEAN:
        if text in BOOLEANS_TEXT:
            return BOOLEANS_TEXT[text]
        raise error(
            "BadBoolean", f"boolean expected for {where}, not {value.shown}", value.place, hint="write true or false"
        )
    if type_ == REAL and (number := parse_real(text)) is not None:
        return number
    if type_ == INTEGER and INTEGER_TEXT.fullmatch(text):
        return int(text)
    if isinstance(value, Reference) and not word.quoted and not text[:1].isdigit():
        raise _no_constant(value, where)
    if type_ == INTEGER:
        number = parse_real(text)
        hint = f"write {number:.0f}" if number is not None and abs(number) < 1e9 and number == int(number) else None
        raise error("BadInteger", f"whole number expected for {where}, not {value.shown}", value.place, hint)
    raise error("BadNumber", f"number expected for {where}, not {value.shown}", value.place)


def _no_constant(value: Reference, where: str) -> ConfigError:
    word, scope = value.word, value.scope
    later = scope.symbols.get(word.text.lower())
    if later is not None and isinstance(later.value, Constant):
        hint = f"it is defined later, at {later.name.place.short}; a constant must be defined before its use"
    else:
        constants = [s.name.text for s in scope.symbols.values() if isinstance(followed(s.value), Constant)]
        hint = suggestion(word.text, constants)
        outer = [s for s in scope.chain() if s is not scope and word.text.lower() in s.symbols]
        if outer and scope.owner is not None:
            hint = "a macro does not see the constants of the script; hand it over as an argument"
    message = f"scalar expected for {where}: '{word.text}' must be a number or a constant"
    return error("ConstantExpected", message, word.place, hint)


def parse_real(text: str) -> float | None:
    """A C floating literal, also with `#INF` after it; None if it is none."""
    if match := INFINITY.fullmatch(text):
        return float("nan") if match[2].lower() == "nan" else float(match[1] + "inf")
    match = REAL_TEXT.fullmatch(text)
    if match is None:
        return None
    if match[4]:
        return float(match[1] + "inf")
    try:
        return float.fromhex(match[1] + match[2]) if match[2] else float(match[1] + match[3])
    except (ValueError, OverflowError):
        return None


def unsupported(function: Word, kind: NodeKind | None) -> ConfigError:
    """The error for a function that cannot be made."""
    if kind is None:
        return error("UndefinedFunction", f"undefined function or macro '{function.text}'", function.place)
    return error("Unsupported", f"{function.text} is not supported", function.place, hint=kind.unsupported)


def located(problem: UserError, place: Place) -> ConfigError:
    """An error of the node library as an error of the script."""
    diagnostic = problem.diagnostic
    return ConfigError("BadValue", diagnostic.message, diagnostic.span or place.span, diagnostic.hint, diagnostic.notes)


def _matched(signature: Signature, call: NodeCall) -> list[tuple[Argument, list[tuple[Value, Place]]]]:
    """The declared arguments with the values given for them, and where these stand."""
    values = [(value, word.place) for value, word in zip(call.arguments, call.call.arguments, strict=True)]
    return [(argument, values[i:] if argument.many else [values[i]]) for i, argument in enumerate(signature)]
