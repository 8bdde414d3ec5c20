"""State of a MEL script: its models and macros, and what commands do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.cntk_config.parameters import ConfigValue
from cntkpy.networks.builders.ndl.parse import Macro, Word, parse_document
from cntkpy.networks.builders.ndl.source import file_documents
from cntkpy.networks.builders.ndl.text import Document, error
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network
from cntkpy.networks.mel.models import COMPLETE, Model, Models, Reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from cntkpy.cntk_config.parameters import ConfigParameters
    from cntkpy.networks.graph.network import Node, ValidatedNetwork


class Files:
    """The files that a script reads and writes.

    Attributes:
        values: whether the parameters of models get values.
    """

    values = True

    def load(self, path: str, precision: str) -> Network:
        """Return the network of a model file."""
        from cntkpy.networks.files.model_file import load_model

        return load_model(path, precision)

    def made(self, network: ValidatedNetwork, nodes: Set[Node]) -> None:
        """Look at a model that will be saved; `nodes`: those that the script has made, not loaded or copied."""

    def save(self, path: str, network: ValidatedNetwork) -> None:
        """Save a model."""
        from cntkpy.networks.files.model_file import save_model

        save_model(path, network)

    def dump(self, path: str, network: Network, nodes: Iterable[Node], values: bool) -> None:
        """Write nodes as text."""
        from cntkpy.networks.graph.dump import dump_nodes

        dump_nodes(path, network, nodes, values=values)


class Editor:
    """The state of a script: models and macros.

    Args:
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`, of all models.
        seeds: the counter of start values.
        section: gives the values of `$variables$` in NDL files.
        files: where models come from and go to; None: the files that the script names.
        errors: collects errors of in-line NDL; None: the first one is raised.
    """

    def __init__(
        self,
        precision: str = "float",
        seeds: SeedCounter | None = None,
        section: ConfigParameters | None = None,
        files: Files | None = None,
        errors: list[UserError] | None = None,
    ) -> None:
        self.precision = precision
        self.seeds = seeds or SeedCounter()
        self.section = section
        self.files = files or Files()
        self.errors = errors
        self.models = Models()
        self.macros: dict[str, Macro] = {}
        self._described: set[str] = set()  # the macros that came with descriptions of models

    def new_network(self) -> Network:
        """Return an empty network."""
        return Network(self.precision, self.files.values)

    def define_macros(self, document: Document) -> None:
        """Take the macros of an NDL text, for the in-line NDL of all models."""
        Model("", self.new_network(), self.macros, self.errors).session.define_macros(document)

    def put(self, name: Word, network: Network) -> Model:
        """Add a model."""
        model = Model(name.text, network, self.macros, self.errors)
        self.models.put(model, name.place)
        return model

    def put_script(self, name: Word, documents: list[Document]) -> None:
        """Add a model that is described in NDL.

        Its macros are known to all that follows, and may replace those of another such description: two sections of
        one file share their macros.
        """
        model = Model(name.text, self.new_network(), self.macros, self.errors)
        for document in documents:
            for statement in parse_document(document)[0]:
                key = statement.name.text.lower()
                if isinstance(statement, Macro) and key in self._described:
                    del self.macros[key]
                    self._described.remove(key)
        previous_macros = set(self.macros)
        for document in documents:
            model.add(document)
        self._described.update(set(self.macros) - previous_macros)
        model.finish(COMPLETE, self.seeds)
        self.models.put(model, name.place)

    def script_documents(self, path: Word, section: Word | None) -> list[Document]:
        """Return the scripts of an NDL file: the section, or what the file itself says."""
        asked = path.place.span
        if section is None:
            return file_documents(path.text, asked, self.section, None)
        try:
            return file_documents(path.text, asked, self.section, (None, ConfigValue(section.text)))
        except ConfigError as problem:
            if problem.kind != "UnknownSection":
                raise
            message = f"'{path.text}' has no section '{section.text}'"
            raise error(problem.kind, message, section.place, problem.hint) from None

    def reference(self, word: Word, phase: int) -> Reference:
        """Resolve a name or pattern, after processing the in-line NDL of its model up to `phase`."""
        reference = self.models.reference(word)
        self.finish(reference.model, phase)
        return reference

    def finish(self, model: Model, phase: int) -> None:
        """Process the in-line NDL of a model."""
        model.finish(phase, self.seeds)
