"""Which models of single epochs are kept: `keepModels`. CNTK keeps all."""

import re
from dataclasses import dataclass
from pathlib import Path

from cntkpy.cntk_config.declare import Type
from cntkpy.cntk_config.parameters import ConfigValue

ALL, LAST, BEST = "all", "last", "best"


def _keep(value: ConfigValue) -> str:
    word = value.strip().lower()
    if word not in (ALL, LAST, BEST) and not re.fullmatch("0*[1-9][0-9]{0,8}", word):
        message = f"'{value}' does not say which models are kept"
        raise value.error("BadChoice", message, "write all, last, best, or a number of models")
    return word


KEEP = Type("all | last | best | number", _keep, choices=(ALL, LAST, BEST))
"""`all`; `last`: the newest one; `best`: the newest and the best one; a number of newest ones."""


@dataclass(frozen=True)
class Kept:
    """Which models stay once that of the newest epoch is written.

    Args:
        keep: what `KEEP` gives.
        done: the number of epochs that are done.
        best: the number of epochs after which the criterion was best.
        back: how many epochs the control of the rate may go back.
    """

    keep: str
    done: int
    best: int | None = None
    back: int = 0

    def __contains__(self, epoch: object) -> bool:
        """Return whether the model after this many epochs stays."""
        newest = int(self.keep) if self.keep.isdigit() else 1
        return (
            not isinstance(epoch, int)
            or self.keep == ALL
            or epoch > self.done - max(newest, self.back + 1)
            or (self.keep == BEST and epoch == self.best)
        )

    def remove_others(self, path: str) -> None:
        """Remove the models of other epochs before the newest one, and their checkpoints."""
        from cntkpy.trainers.checkpoints.checkpoint import checkpoint_name, remove

        if self.keep == ALL:
            return
        model = re.compile(re.escape(Path(path).name) + r"\.(0|[1-9][0-9]*)", re.ASCII)
        for child in Path(path).parent.iterdir():
            match = model.fullmatch(child.name)
            if match and int(match[1]) not in self:
                remove(str(child))
                remove(checkpoint_name(str(child)))
