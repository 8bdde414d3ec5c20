"""The models that a MEL script works on, and how it names them and their nodes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, nearest, suggestion
from cntkpy.networks import nodes
from cntkpy.networks.builders.ndl.front_end import Session
from cntkpy.networks.builders.ndl.parse import Macro, Word
from cntkpy.networks.builders.ndl.scalars import parse_real
from cntkpy.networks.builders.ndl.scope import MAX_STEPS, Constant, Instance, NodeCall, Scope, Value, followed
from cntkpy.networks.builders.ndl.text import Document, Place, error
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network, Node

log = logging.getLogger("cntkpy.networks")

CONNECTED, COMPLETE = 2, 3
"""Stages of in-line NDL processing: from the start there are nodes; then inputs and groups; then start values."""


class Model:
    """A network with the in-line NDL that was added to it.

    Args:
        name: what the script calls it.
        network: the network.
        macros: the macros that its in-line NDL may call; shared by all models.
        errors: collects errors of in-line NDL; None: the first one is raised.
    """

    def __init__(
        self, name: str, network: Network, macros: dict[str, Macro], errors: list[UserError] | None = None
    ) -> None:
        self.name = name
        self.network = network
        self.session = Session(network, macros=macros, errors=errors)
        self.changed = False
        """True if nodes were removed or renamed since in-line NDL was added last."""
        self._warned = 0
        self._pending = 0

    def add(self, document: Document) -> None:
        """Make the nodes of an NDL text, without inputs yet."""
        if self.changed:
            self._forget()
            self.changed = False
        self.session.add(document)
        self._pending = CONNECTED
        warnings = self.session.warnings
        for warning in warnings[self._warned :]:
            log.warning("%s", warning.one_line() + (f" ({warning.hint})" if warning.hint else ""))
        self._warned = len(warnings)

    def finish(self, phase: int, seeds: SeedCounter) -> None:
        """Connect the nodes added so far and (phase `COMPLETE`) give parameters their start values."""
        if self._pending == CONNECTED and phase >= CONNECTED:
            self.session.connect()
            self._pending = COMPLETE
            for node in self.network.nodes.values():
                for source in node.connected:
                    if self.network.nodes.get(source.name) is not source:
                        message = f"the input '{source.name}' of '{node.name}' was removed from the model"
                        raise ConfigError("UnknownNode", message, node.span)
        if self._pending == COMPLETE and phase == COMPLETE:
            self.session.initialise(seeds)
            self._pending = 0

    def symbol(self, word: Word, constants: bool) -> Node | None:
        """Return the node that a name of the in-line NDL stands for; `constants`: a number gives a parameter."""
        value: Value | None = self.session.expander.expansion.top.find(word)
        for _ in range(MAX_STEPS):
            value = followed(value) if value is not None else None
            if not isinstance(value, Instance):
                break
            value = value.result
        if isinstance(value, NodeCall):
            node = self.session.builder.made.get(value)
            return node if node is not None and self.network.nodes.get(node.name) is node else None
        number = parse_real(value.word.text) if constants and isinstance(value, Constant) else None
        if number is None:
            return None
        node = nodes.create(self.network, "Constant", word.text, options={"value": number}, span=word.place.span)
        self.network.initialize(node, SeedCounter())
        return node

    def _forget(self) -> None:
        """Free the names of in-line statements whose nodes have all been removed or renamed."""
        expansion = self.session.expander.expansion
        alive: dict[Scope, bool] = {}
        for call in expansion.calls:
            node = self.session.builder.made.get(call)
            here = node is not None and self.network.nodes.get(call.name) is node
            scopes: list[Scope] = list(call.scope.chain())
            for scope in scopes:
                alive[scope] = alive.get(scope, False) or here
        for key, symbol in list(expansion.top.symbols.items()):
            value = symbol.value
            if isinstance(value, Instance) and not alive.get(value.scope, True):
                del expansion.top.symbols[key]
            elif isinstance(value, NodeCall):
                node = self.session.builder.made.get(value)
                if node is not None and self.network.nodes.get(value.name) is not node:
                    del expansion.top.symbols[key]


class Models:
    """The table of models, with the default one."""

    def __init__(self) -> None:
        self.default: Model | None = None
        self._models: dict[str, Model] = {}

    def __iter__(self) -> Iterator[Model]:
        return iter(self._models.values())

    def get(self, name: str) -> Model | None:
        """Return the model of that name (ignoring case), or None."""
        return self._models.get(name.lower())

    def find(self, word: Word) -> Model:
        """Return the model of that name; an error if there is none."""
        model = self.get(word.text)
        if model is not None:
            return model
        names = [model.name for model in self]
        hint = suggestion(word.text, names)
        hint = hint or (f"the models are: {', '.join(names)}" if names else "load one: m = LoadModel(file)")
        raise error("UnknownModel", f"there is no model '{word.text}'", word.place, hint)

    def put(self, model: Model, place: Place) -> None:
        """Add a model. The first one becomes the default; one that replaces the default model does, too."""
        old = self.get(model.name)
        if old is not None:
            log.warning("%s: the model '%s' is replaced by another one", place.short, old.name)
        if self.default is None or self.default is old:
            self.default = model
        self._models[model.name.lower()] = model

    def drop(self, model: Model) -> None:
        """Take a model out; if it was the default one, there is none afterwards."""
        del self._models[model.name.lower()]
        if self.default is model:
            self.default = None

    def needed_default(self, place: Place) -> Model:
        """Return the default model; an error if there is none."""
        if self.default is None:
            raise error("NoDefaultModel", "there is no default model", place, "choose one with SetDefaultModel(name)")
        return self.default

    def reference(self, word: Word) -> Reference:
        """Resolve `[model.]pattern`."""
        text = word.text
        cut = min((position for position in (text.find("."), text.find("*")) if position >= 0), default=len(text))
        model = self.get(text[:cut]) if cut else None
        if model is None:
            model, pattern = self.needed_default(word.place), text
        else:
            pattern = (text[cut + 1 :] if text[cut : cut + 1] == "." else text[cut:]) or "*"
        if pattern.count("*") > 1:
            message = f"no node can be found by '{word.text}': a pattern has at most one '*'"
            raise error("BadPattern", message, word.place)
        hidden = None
        if self.default is not None and model is not self.default and text in self.default.network.nodes:
            hidden = (
                f"'{text[:cut]}' is a model; the node of the model '{self.default.name}' is {self.default.name}.{text}"
            )
        return Reference(model, pattern, word, hidden)


@dataclass(frozen=True)
class Reference:
    """Nodes of a model by a full name (ignoring case) or by `head*tail` (case counts)."""

    model: Model
    pattern: str
    word: Word
    hidden: str | None = None
    """Advice, if the default model has a node of this name that is hidden by the name of a model."""

    @property
    def wild(self) -> bool:
        """True if it is a pattern."""
        return "*" in self.pattern

    @property
    def ends(self) -> tuple[str, str]:
        """Texts before and after the `*`."""
        head, _, tail = self.pattern.partition("*")
        return head, tail

    def matches(self) -> list[Node]:
        """Return the nodes of the network that it names; perhaps none."""
        network = self.model.network
        if not self.wild:
            return [network.nodes[self.pattern]] if self.pattern in network.nodes else []
        return [node for node in network.nodes.values() if self.middle(node) is not None]

    def middle(self, node: Node) -> str | None:
        """Return the text matched by `*` in a node's name; None if it does not fit."""
        head, tail = self.ends
        name = node.name
        if len(name) < len(head) + len(tail) or not name.startswith(head) or not name.endswith(tail):
            return None
        return name[len(head) : len(name) - len(tail)]

    def nodes(self, symbols: bool = True, constants: bool = False) -> list[Node]:
        """Return the nodes, at least one. `symbols`: names of the in-line NDL count as well."""
        matches = self.matches()
        if matches:
            return matches
        if symbols and not self.wild:
            node = self.model.symbol(Word(self.pattern, self.word.place), constants)
            if node is not None:
                return [node]
        raise self.unknown()

    def node(self, constants: bool = False) -> Node:
        """Return the one node."""
        result = self.nodes(constants=constants)
        if len(result) == 1:
            return result[0]
        names = ", ".join(node.name for node in result[:5]) + (", ..." if len(result) > 5 else "")
        message = f"'{self.word.text}' must name one node, it names {len(result)}"
        raise error("BadPattern", message, self.word.place, notes=(f"these: {names}",))

    def unknown(self) -> ConfigError:
        """Return the error that nothing fits."""
        names = list(self.model.network.nodes)
        where = f" in the model '{self.model.name}'"
        if not self.wild:
            message = f"could not find a symbol for '{self.word.text}'{where}"
            return error("UnknownNode", message, self.word.place, self.hidden or self._meant(self.pattern, names))
        head, tail = (end.lower() for end in self.ends)
        least = len(head) + len(tail)
        fits = [n for n in names if len(n) >= least and n.lower().startswith(head) and n.lower().endswith(tail)]
        hint = f"with '*' the letter case counts: there is '{self._model_in_front}{fits[0]}'" if fits else None
        if hint is None and head:
            hint = self._meant(head, {name[: len(head)] for name in names})
        message = f"could not find a symbol for '{self.word.text}'{where}: no name fits"
        return error("UnknownNode", message, self.word.place, hint)

    @property
    def _model_in_front(self) -> str:
        """The name of the model with its point, where the script has it."""
        return self.word.text.removesuffix(self.pattern) if self.word.text.endswith(self.pattern) else ""

    def _meant(self, name: str, names: Iterable[str]) -> str | None:
        """Return the hint of the nearest of some names, as the script would have it."""
        meant = nearest(name, names)
        return f"did you mean '{self._model_in_front}{meant}'?" if meant else None
