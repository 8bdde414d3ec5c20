"""A model that stops after each of its parts and lets somebody look at values and gradients."""

# What programs give is of any type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import pdb
import sys
from collections.abc import Callable
from typing import Any, TextIO

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.recipes import resolve
from cntkpy.trainers.fronts.cntk2.user.functions import UserFunction, output_variable, user_function

from ..misc.converter import converted
from ..missing import no_attribute

FORWARD, BACKWARD = "forward", "backward"

HELP = """    n - execute the next part
    n <number> - execute the next <number> parts
    n f - execute until the forward pass
    n b - execute until the backward pass
    c - execute until the end, without further stops
    p - print the value, or the gradient
    d - open pdb here; `value` is the value or the gradient
    q - quit
"""


class _Prompt:
    """Reads commands, and knows how long to go on without.

    Args:
        source: of the commands, one a line; its end is the command `c`.
        out: for what is printed.
        leave: called by the command `q`.
    """

    def __init__(self, source: TextIO, out: TextIO, leave: Callable[[], Any]) -> None:
        self._source, self._out, self._leave = source, out, leave
        self._skipped = 0
        self._until: str | None = None
        self._silent = False

    def stop(self, phase: str, label: str, value: Any) -> None:
        """Ask for commands after a part was computed, unless one said to go on."""
        if self._silent or (self._until is not None and self._until != phase):
            return
        self._until = None
        if self._skipped > 0:
            self._skipped -= 1
            return
        self._out.write(f"\n{phase} of {label}\n")
        while not self._obeyed(phase, value):
            pass

    def _obeyed(self, phase: str, value: Any) -> bool:
        """Read and obey a command; whether computing goes on."""
        self._out.write(f"[CNTK {phase}] >>> ")
        self._out.flush()
        line = self._source.readline()
        command, _, argument = line.strip().partition(" ")
        argument = argument.strip()
        if not line or command == "c":
            self._silent = True
        elif command == "n" and argument in ("f", "b"):
            self._until = FORWARD if argument == "f" else BACKWARD
        elif command == "n" and (not argument or (argument.isdigit() and int(argument) > 0)):
            self._skipped = int(argument or 1) - 1
        elif command == "p":
            self._out.write(f"{value}\n")
            return False
        elif command == "d":
            pdb.Pdb(stdin=self._source, stdout=self._out).set_trace()
            return False
        elif command == "q":
            self._silent = True
            self._leave()
        else:
            self._out.write(f"'{line.strip()}' is not a command. There are:\n{HELP}")
            return False
        return True


class _Stop(UserFunction):
    """The part itself; its value and its gradient are shown as they pass.

    Args:
        part: the part.
        prompt: asks what to do.
    """

    def __init__(self, part: Function, prompt: _Prompt) -> None:
        super().__init__([part], name=part.name)
        self._prompt = prompt
        self._label = f"{part!r} {part.shape}"

    def infer_outputs(self) -> list[Function]:
        """As the part."""
        part = self.inputs[0]
        return [output_variable(part.shape, part.dtype, part.dynamic_axes)]

    def forward(self, *arguments: Any) -> tuple[None, Any]:
        """Return the value, after a stop."""
        self._prompt.stop(FORWARD, self._label, arguments[0])
        return None, arguments[0]

    def backward(self, *arguments: Any) -> Any:
        """Return the gradient, after a stop."""
        self._prompt.stop(BACKWARD, self._label, arguments[1])
        return arguments[1]

    def clone(self, cloned_inputs: Any) -> _Stop:
        """Return the same of another part."""
        return _Stop(cloned_inputs[0], self._prompt)


def debug_model(
    model: Function,
    in_stream: TextIO | None = None,
    out_stream: TextIO | None = None,
    exit_func: Callable[[], Any] = sys.exit,
) -> Function:
    """Return a model that stops after each part of it was computed, and each gradient, and asks what to do.

    It shares its parameters with the model. The commands are those of `HELP`; another one prints them. Steps of
    recurrences are not stopped at, nor is what chooses steps of sequences; their results are. Parts that do not depend
    on each other come in any order.

    Args:
        model: the function to look into, which stays as it is.
        in_stream: where commands come from; standard input.
        out_stream: where is printed; standard output.
        exit_func: called by the command `q`; what it raises, SystemExit, is raised by `eval` and `train_minibatch`.

    Returns:
        The model; evaluate or train it in place of the other.
    """
    prompt = _Prompt(in_stream or sys.stdin, out_stream or sys.stdout, exit_func)
    shown = _shown(model)
    return converted(model, lambda part: part.root in shown, lambda part: user_function(_Stop(part, prompt)))


CHOICES = ("Where", "RepeatSteps", "PackedIndex")
"""Operations that choose steps; what they are computed from says which steps there are, and is not stopped at."""


def _shown(model: Function) -> set[NodeValue]:
    """Return the parts that are stopped at: neither steps of recurrences nor choices of steps."""
    waiting, seen = list(model.roots), set[NodeValue]()
    resolve(model.roots)
    while waiting:
        node = waiting.pop()
        if node in seen or node.operation.name in CHOICES:
            continue
        seen.add(node)
        waiting.extend(calls.inputs_of(node))
    return {value for value in seen if all(value not in resolve([source]) for source in calls.inputs_of(value))}


__all__ = ["debug_model"]

__getattr__ = no_attribute("cntk.debugging.debug", __all__)
