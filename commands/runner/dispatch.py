"""The actions by name: what `action = NAME` runs, and which parameters it declares. Everything is imported on use."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cntk_config import ConfigError, ConfigParameters
from cntk_config.base.diagnostics import Span, suggestion

if TYPE_CHECKING:
    from cntk_config.declare import Declared
    from commands.runner.context import RunContext

ENTRY_POINTS = "cntkpy.actions"


@dataclass(frozen=True)
class Action:
    """One action: where its function is, and where the declaration of its parameters is (None: it declares none)."""

    function: str
    declared: str | None = None

    def run(self, section: ConfigParameters, context: "RunContext") -> None:
        """Import the function and run it."""
        function: Callable[[ConfigParameters, RunContext], None] = load_object(self.function)
        function(section, context)

    def declaration(self) -> "type[Declared] | None":
        """Return the class that declares the parameters, None if there is none.

        A function of another package has it as its attribute `declared`.
        """
        return load_object(self.declared) if self.declared else getattr(load_object(self.function), "declared", None)


_TRAIN = Action("commands.actions.train:train", "commands.actions.train:TrainParameters")
_TEST = Action("commands.actions.evaluate:test", "commands.actions.evaluate:TestParameters")
_WRITE = Action("commands.actions.write:write", "commands.actions.write:WriteParameters")
_DUMP = Action("commands.actions.dump_node:dump_node", "commands.actions.dump_node:DumpNodeParameters")
_CV = Action(
    "commands.actions.cross_validate:cross_validate", "commands.actions.cross_validate:CrossValidateParameters"
)
_UNROLL = Action("commands.actions.test_unroll:unroll", "commands.actions.test_unroll:TestUnrollParameters")
_ADAPT = Action("commands.actions.adapt:adapt", "commands.actions.adapt:AdaptParameters")
_BN = Action("commands.actions.bn_statistics:bn_statistics", "commands.actions.bn_statistics:BNStatisticsParameters")
_SVD = Action("commands.actions.svd:svd", "commands.actions.svd:SVDParameters")
_WORDS = Action(
    "commands.actions.write_word_and_class:write_word_and_class",
    "commands.actions.write_word_and_class:WriteWordAndClassParameters",
)
_LABELS = Action(
    "commands.actions.create_label_map:create_label_map", "commands.actions.create_label_map:CreateLabelMapParameters"
)

ACTIONS: dict[str, Action] = {
    "train": _TRAIN,
    "trainRNN": _TRAIN,
    "test": _TEST,
    "eval": _TEST,
    "write": _WRITE,
    "dumpNode": _DUMP,
    "dumpnode": _DUMP,
    "dumpNodes": _DUMP,
    "cv": _CV,
    "testUnroll": _UNROLL,
    "adapt": _ADAPT,
    "bnstat": _BN,
    "SVD": _SVD,
    "writeWordAndClass": _WORDS,
    "createLabelMap": _LABELS,
    "edit": Action("commands.actions.edit:edit", "commands.actions.edit:EditParameters"),
    "plot": Action("commands.actions.plot_network:plot", "commands.actions.plot_network:PlotParameters"),
}
"""The built-in actions. Names are case-sensitive."""

NOT_SUPPORTED = {
    "convertdbn": "describe the network with a builder and start its parameters with initFromFilePath",
    "exportdbn": "use action=dumpNode, which writes every parameter as text",
    "devtest": "it ran internal tests of the original; cntkpy's own are run by pytest",
}
"""Actions of the original which cntkpy will not have, with what to use instead."""

TRAINING = ("train", "trainRNN")


def load_object(path: str):
    """Return the object named by `module:name`."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def plugin_actions() -> dict[str, Action]:
    """Return the actions of installed packages: entry points `cntkpy.actions`, name = `module:function`.

    A function may name the declaration of its parameters in its attribute `declared`.
    """
    from importlib.metadata import entry_points

    return {point.name: Action(point.value) for point in entry_points(group=ENTRY_POINTS)}


def find_action(name: str, command: str, span: Span | None = None) -> Action:
    """Return the action called `name`; a located error with a suggestion if there is none."""
    if name in ACTIONS:
        return ACTIONS[name]
    if name in NOT_SUPPORTED:
        message = f'action "{name}" is not supported  (command {command})'
        raise ConfigError("UnknownAction", message, span=span, hint=NOT_SUPPORTED[name])
    plugins = plugin_actions()
    if name in plugins:
        return plugins[name]
    message = f"unknown action: {name}  in command set: {command}"
    hint = suggestion(name, [*ACTIONS, *plugins])
    raise ConfigError("UnknownAction", message, span=span, hint=hint)
