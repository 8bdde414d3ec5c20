"""Models before a run: those that are there, and those that its commands are going to write."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError, UserError
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span, nearest
from cntkpy.cntk_config.base.extras import how_to_install, missing
from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.base.names import is_url
from cntkpy.commands.actions.edit import EditParameters, builds
from cntkpy.commands.actions.train import TrainParameters
from cntkpy.commands.catalogue.dispatch import names_of
from cntkpy.commands.catalogue.section_map import Use
from cntkpy.commands.checks.files import is_output, makes_anything, outputs
from cntkpy.commands.checks.scan import TRAINING

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Network

NEAR = 0.85
"""Least likeness of two files of models if one is meant to be the other, 0 to 1."""

NAMED = re.compile(r" (?:model|values in) (.+?)(?:: [^:]*)?$")
"""The file that a message about a model, or about start values, is about."""

OTHER_MODELS = frozenset(name for action in ("edit", "SVD", "adapt", "bnstat") for name in names_of(action))
"""Actions that write models beside the training's own, perhaps one with which a training resumes."""


class ModelToCome(Exception):
    """A command writes the model, and nothing is known of it before."""


class Models:
    """The models as a command finds them that comes after some others.

    Args:
        here: those that nothing writes are here.
        complete: all commands are known; others may write anything.
    """

    def __init__(self, here: bool = False, *, complete: bool = True) -> None:
        self.here = here
        self._networks: dict[str, Network] = {}
        self._written: set[str] = set()
        self._trained: dict[str, int] = {}
        """Files of models that commands make, with the number of epochs: each but the last has a file of its own."""
        self._names: dict[str, str] = {}
        """The same files as the commands name them, for hints; all other paths here are whole."""
        self._anything = not complete
        self._edited: dict[str, Network] | None = None
        """Models that the script of the command at hand saves, if all of it is known."""
        self._script: set[str] | None = None
        """Files that the script of the command at hand writes, if it can be read."""
        self._other_models: set[str] = set()
        """Files of commands that write models without training."""
        self._any_model = not complete

    def load(self, path: str, precision: str) -> Network:
        """Return the network of a model, without the values of its parameters.

        Raises:
            ModelToCome: an earlier command may write it, and its network is not known.
            UserError: there is no such file, or it is not a model; it is one of another program, and NumPy is missing.
        """
        name = whole_path(path)
        if self._final(name) in self._networks:
            return self._networks[self._final(name)]
        if self._anything or self._is_output(name):
            raise ModelToCome
        if is_url(path):  # a model behind a URL is not loaded before the run
            raise ModelToCome
        from cntkpy.networks.files.cntk_binary.recognise import is_cntk, is_onnx
        from cntkpy.networks.files.model_file import load_model

        package = missing("data") if is_cntk(path) or is_onnx(path) else None
        if package is not None:
            message = f"the model {path} is not looked into: that needs {package}, which is not installed"
            raise UserError("MissingPackage", message, hint=how_to_install("data"))
        return load_model(path, precision, values=False)

    def of_file(self, path: str, precision: str) -> Network:
        """Return the network of a file as `load` does, but one that may be changed."""
        name = self._final(whole_path(path))
        if name not in self._networks:
            return self.load(path, precision)
        from cntkpy.networks.files.model_file import as_reread

        try:
            return as_reread(self._networks[name].validate(), precision)
        except UserError:
            raise ModelToCome from None  # found where it is built

    def script_writes(self, paths: Iterable[str]) -> None:
        """Note the files that the script of the current command writes; it writes no others."""
        self._script = set(paths)

    def may_resume(self, is_own: Callable[[str], bool]) -> bool:
        """Return whether an earlier command, which is no training, may write one of the files of a training."""
        return self._any_model or any(map(is_own, self._other_models))

    def has_saved(self, networks: Mapping[str, Network]) -> None:
        """Note the models that the script of the current command saves, by files; it writes no other model."""
        self._edited = {whole_path(path): network for path, network in networks.items()}

    def built(self, path: str) -> Network | None:
        """Return the network that a builder of an earlier command makes for this file, if that is known."""
        return None if self._anything else self._networks.get(whole_path(path))

    def is_missing(self, path: str) -> bool:
        """Return whether there is no such file and no earlier command may write it."""
        if is_url(path):  # it is not asked for
            return False
        name = whole_path(path)
        known = self._anything or self._final(name) in self._networks or self._is_output(name)
        return not known and not exists(Path(path))

    def _is_output(self, name: str) -> bool:
        """Return whether an earlier command writes a file whose name begins with one of its values."""
        return self._past_end(name) is None and is_output(name, self._written)

    def _final(self, name: str) -> str:
        """Return the file of the whole training where `name` is that of one of its epochs; else `name`."""
        whole, _, number = name.rpartition(".")
        return whole if _is_epoch(name) and int(number) < self._trained.get(whole, 0) else name

    def past_end(self, path: str) -> str | None:
        """Return the model of an earlier training if `path` is that of its last epoch, without a number, or later."""
        whole = self._past_end(whole_path(path))
        return None if whole is None else self._names[whole]

    def _past_end(self, name: str) -> str | None:
        whole = name.rpartition(".")[0]
        epochs = self._trained.get(whole, 0)
        return whole if epochs and _is_epoch(name) and self._final(name) == name else None

    def near(self, path: str) -> str | None:
        """Return the model of an earlier command whose name is nearly the same, but for numbers."""
        name = nearest(os.path.normpath(path), self._names.values(), NEAR)
        return name if name and re.sub("[0-9]", "", name) != re.sub("[0-9]", "", os.path.normpath(path)) else None

    def may_write(self, message: str) -> bool:
        """Return whether an earlier command may write the file that a message is about."""
        named = NAMED.search(message)
        return self._anything or (named is not None and self._is_output(whole_path(named[1])))

    def pass_command(self, command: Use, network: Network | None) -> None:
        """Take account of what a command leaves behind; `network` is what its builder makes, if that is known."""
        edited, self._edited = self._edited, None
        script, self._script = self._script, None
        path, epochs, kept = _model_of(command)
        if path:
            self._trained[whole_path(path)] = epochs
            self._names[whole_path(path)] = os.path.normpath(path)
        if path and kept and exists(Path(path)):
            return
        self._networks.update(edited or {})
        written = set(map(whole_path, {*outputs(command), *(script or ())}))
        self._any_model = self._any_model or command.open or (script is None and runs_script(command))
        self._anything = self._anything or self._any_model or makes_anything(command)
        self._written.update(written)
        if OTHER_MODELS & set(command.actions):
            self._other_models.update(written)
        if path and network is not None:
            self._networks[whole_path(path)] = network


def whole_path(path: str) -> str:
    """Return a path from the root, so that different texts of one file are equal."""
    return str(Path(path).resolve())


def _is_epoch(name: str) -> bool:
    """Return whether the name of a file ends like that of an epoch."""
    return re.fullmatch(r"[0-9]{1,9}", name.rpartition(".")[2]) is not None


def _model_of(command: Use) -> tuple[str, int, bool]:
    """Return the model that a command makes of its builder, its epochs, and whether a model that is there stays."""
    actions = set(command.actions)
    try:
        if actions & set(TRAINING):
            training = TrainParameters(command.section)
            kept = training.make_mode and actions <= set(TRAINING)
            return str(training.sgd.model_path), training.sgd.max_epochs, kept
        if actions == {"edit"}:
            p = EditParameters(command.section)
            return (str(p.output_path), 0, p.make_mode) if builds(p) and p.output_path is not None else ("", 0, False)
    except ConfigError:
        pass  # already found
    return "", 0, False


def runs_script(command: Use) -> bool:
    """Return whether a script of the model editing language may write any file."""
    try:
        return "edit" in command.actions and not builds(EditParameters(command.section))
    except ConfigError:
        return True


def model_meant(path: str, models: Models) -> str | None:
    """Return a hint that names a similar model of an earlier command."""
    if whole := models.past_end(path):
        return f"the last epoch is saved as '{whole}'"
    near = models.near(path)
    return f"did you mean '{near}'?" if near else None


def located(problem: Diagnostic, place: Span | None, models: Models) -> Diagnostic:
    """Return the finding of an error of a network that may need files.

    A missing model, or file of start values, is a hint where the data need not be here, or where an earlier command
    can write it. The texts of a network, as its macros, belong to the configuration and are always needed.
    """
    data = problem.kind in ("NoModel", "CannotRead")
    hint = data and (not models.here or models.may_write(problem.message))
    kind = "MissingFile" if hint else problem.kind
    meant = model_meant(problem.message.rpartition(" ")[2], models) if problem.kind == "NoModel" else None
    severity = "warning" if (meant and hint) or problem.kind == "MissingPackage" else "error"
    return Diagnostic(
        kind, problem.message, problem.span or place, meant or problem.hint, problem.notes, severity=severity
    )
