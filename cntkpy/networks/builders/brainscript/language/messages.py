"""Errors and warnings of an evaluation, at places of the user's text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, Hint
from cntkpy.cntk_config.base.source import Text
from cntkpy.networks.builders.brainscript.language.source import Place
from cntkpy.networks.builders.brainscript.language.values import Delayed, Scope, joined


class Messages:
    """Makes errors and keeps warnings.

    Args:
        library: texts whose places mean nothing to the user; errors in them are shown at the call that led there.

    Attributes:
        warnings: The warnings so far.
        forcing: Values that are being computed, innermost last.
    """

    def __init__(self, library: Iterable[Text]) -> None:
        self.library = list(library)
        self.warnings: list[Diagnostic] = []
        self.forcing: list[Delayed] = []

    def error(
        self, kind: str, message: str, place: Place, scope: Scope | None, hint: Hint = None, notes: Iterable[str] = ()
    ) -> ConfigError:
        """Return an error with its place and the calls that led there, to be raised."""
        where = [place] if scope is None else [place, *islice(scope.calls(), 12)]
        shown = [place for place in where if place.text not in self.library]
        if scope is not None and not shown:
            shown = list(islice((call for call in scope.calls() if call.text not in self.library), 1))
        if not shown:  # a default of the library, which does not know who asked for it
            asking = [
                (delayed.expression, delayed.scope) for delayed in reversed(self.forcing) if delayed.scope is not None
            ]
            places = (
                place for expression, inside in asking for place in (expression.place, *islice(inside.calls(), 12))
            )
            shown = list(islice((place for place in places if place.text not in self.library), 1))
        if not shown:
            return ConfigError(kind, message, place.span, hint, [*place.notes, *notes])
        inner = where[0]
        frames = list(notes)
        if inner is not shown[0]:
            frames.append(f"it happens inside the library, at {inner}")
        frames += [f"called at {call}: {_one_line(call)}" for call in dict.fromkeys(shown[1:6]) if call != shown[0]]
        return ConfigError(kind, message, shown[0].span, hint, [*shown[0].notes, *frames])

    def user_place(self, place: Place, scope: Scope | None) -> Place:
        """Return the place itself, or where it is inside the library the call that led there."""
        if place.text in self.library and scope is not None:
            return next((call for call in scope.calls() if call.text not in self.library), place)
        return place

    def warn(self, kind: str, message: str, place: Place, hint: str | None = None) -> None:
        """Keep a warning."""
        self.warnings.append(Diagnostic(kind, message, place.span, hint, place.notes, "warning"))

    def too_long(self, steps: int) -> ConfigError:
        """Return the error of an evaluation without an end, at the innermost place of the user's text that is known."""
        delayed = self.forcing[-1] if self.forcing else None
        if delayed is None:
            return ConfigError("TooMany", f"the evaluation takes more than {steps} steps")
        hint = "a function that calls itself twice takes twice as long for every level; give what it needs twice a name"
        place, message = delayed.expression.place, f"the evaluation takes more than {steps} steps"
        return self.error("TooMany", message, place, delayed.scope, hint)

    def circular(self, delayed: Delayed, place: Place) -> ConfigError:
        """Return the error of a value that is needed to compute itself."""
        cycle = self.forcing[self.forcing.index(delayed) :]
        names = [joined(delayed.path) or "?" for delayed in cycle]
        chain = " -> ".join([*(names if len(names) <= 6 else [*names[:5], "..."]), names[0]])
        return self.error(
            "CircularReference",
            f"circular reference: the value of '{names[0]}' is needed to compute itself ({chain})",
            place,
            delayed.scope,
            "a loop over time needs PastValue or FutureValue; a name cannot be defined by its own outer meaning",
        )


def _one_line(place: Place) -> str:
    text = " ".join(place.string[:200].split())
    return text if len(text) <= 60 else text[:57] + "..."
