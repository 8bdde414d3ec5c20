"""How many parallel sequences a reader has: what converts rates per minibatch where sequences are truncated."""

from typing import Any

from readers.minibatch import Minibatch
from readers.reader import Reader


class CountedReader:
    """A reader that knows how many sequences its last minibatch had side by side.

    **Arguments:** `reader` reads the data.
    """

    def __init__(self, reader: Reader):
        self._reader = reader
        self.last_slots = 0
        """Slots of the last minibatch given out; 0 before the first."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def get_minibatch(self) -> Minibatch | None:
        """The next minibatch, None after the last of the epoch."""
        minibatch = self._reader.get_minibatch()
        if minibatch is not None:
            self.last_slots = next(iter(minibatch.layouts.values())).S
        return minibatch

    def state(self) -> dict[str, Any]:
        """Position after the last minibatch given out, to be stored as JSON."""
        return {**self._reader.state(), "last_slots": self.last_slots}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken, in the middle of an epoch too."""
        self.last_slots = state.get("last_slots", 0)
        self._reader.restore({name: value for name, value in state.items() if name != "last_slots"})
