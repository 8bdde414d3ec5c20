"""From a program in BrainScript to the network it describes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.source import Text
from cntkpy.cntk_config.parameters import ConfigValue
from cntkpy.networks.builders.brainscript.graph import Built, graph_of
from cntkpy.networks.builders.brainscript.loading import Load
from cntkpy.networks.builders.brainscript.mistakes import Mistakes
from cntkpy.networks.builders.brainscript.program import Program, evaluate_network, evaluator_with
from cntkpy.networks.builders.brainscript.source import program_names, program_of, text_of
from cntkpy.networks.files.model_file import load_model
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.networks.graph.precision import known_precision

log = logging.getLogger("cntkpy.networks")


def build_brainscript(value: ConfigValue, precision: str, seeds: SeedCounter) -> ValidatedNetwork:
    """Make the network that a value of a configuration describes in BrainScript.

    Args:
        value: the value; its `scope` is the section of the command.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`.
        seeds: the counters of the process; BrainScript has one for each precision.

    Raises:
        ConfigError: the description is wrong, at its place in the user's files.
    """
    program = program_of(value)
    built = build_program(program, precision, seeds.other(f"BrainScript {precision}"), program_names(value.scope))
    for warning in built.warnings:
        log.warning("%s", warning.render().removeprefix("warning: "))
    return built.network


class Checked(NamedTuple):
    """A program that was looked at.

    Attributes:
        program: what can be read of it; None if nothing can be.
        built: its network; None if there are mistakes.
        errors: its mistakes.
    """

    program: Program | None
    built: Built | None
    errors: list[UserError]


def check_program(text: Text, names: Mapping[str, float | str], precision: str, load: Load = load_model) -> Checked:
    """Look at the names and shapes of a program, without the values of its random parameters; nothing is printed.

    Args:
        text: its text, with included files.
        names: `deviceId` and `traceLevel`.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`.
        load: gives the networks of model files; what it raises besides a `UserError` is passed on.
    """
    mistakes = Mistakes()
    program = mistakes.program(text)
    if program is None:
        return Checked(None, None, mistakes.errors)
    evaluator = evaluator_with(SeedCounter(), load)
    evaluator.prints = False
    precision = known_precision(precision)
    built = mistakes.network(program, evaluator, {**names, "precision": precision}, precision)
    return Checked(program, None if mistakes.errors else built, mistakes.errors)


def outline_brainscript(value: ConfigValue, precision: str) -> Built:
    """Return the network without the values of its random parameters, as `check_program` does.

    Raises:
        UserError: the first mistake.
    """
    checked = check_program(text_of(value), program_names(value.scope), precision)
    if checked.built is None:
        raise checked.errors[0]
    return checked.built


def build_program(program: Program, precision: str, seeds: SeedCounter, names: Mapping[str, float | str]) -> Built:
    """Make the network that a program describes.

    Args:
        program: see `parse_network`.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`.
        seeds: hands out the seeds of random parameters, in the order of evaluation.
        names: `deviceId` and `traceLevel`.

    Raises:
        ConfigError: what is wrong with the description, where, and which calls led there.
    """
    precision = known_precision(precision)
    evaluator = evaluator_with(seeds)
    value = evaluate_network(program, evaluator, {**names, "precision": precision})
    return graph_of(value, evaluator, precision)
