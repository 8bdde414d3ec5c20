"""The files of a training: their names, where to resume, and the checkpoint of the trainer's own state.

Names and the rule for resuming are CNTK's (docs/specification/actions-and-training.md 3). The content is ours:
the optimiser's arrays, and the scalars, schedules and the reader's position as JSON.
"""

import contextlib
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from cntkpy.cntk_config.base.files import open_input
from cntkpy.cntk_config.base.names import shareable
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.networks.files.model_file import read_training
from cntkpy.trainers.checkpoints.array_file import Arrays, load_arrays, not_a_checkpoint, save_arrays

FORMAT = "cntkpy checkpoint 1"
_FIELDS = {
    "samples_seen": int,
    "rate": float | int | None,
    "reference": str,
    "minibatch_size": int,
    "reader": dict,
    "extra": dict,
}


def model_name(model_path: str, epoch: int, max_epochs: int) -> str:
    """The model file after `epoch` epochs: `P.0` to `P.{max_epochs-1}`, and `P` itself at the end."""
    return model_path if epoch >= max_epochs else f"{model_path}.{epoch}"


def checkpoint_name(model: str) -> str:
    """The checkpoint that belongs to a model file."""
    return model + ".ckp"


def partial_name(model: str) -> str:
    """The state inside the epoch that follows a model file (ours)."""
    return model + ".partial"


@dataclass(frozen=True)
class TrainingRecord:
    """What is kept in a model file about its training.

    Args:
        epochs: number of epochs that were trained.
        settings: the parameters that were given, their texts by path.
        ended: training was over, whatever the number of epochs that were asked for.
        keeps: which files besides all models were kept, see `cntkpy.trainers.loop.tidy.keeps`.
    """

    epochs: int
    settings: dict[str, str]
    ended: bool = False
    keeps: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        more = ({"ended": True} if self.ended else {}) | ({"keeps": self.keeps} if self.keeps else {})
        return {"epochs": self.epochs, "settings": shareable(self.settings), **more}

    @classmethod
    def of(cls, model: str) -> "TrainingRecord | None":
        """That of a model file; None if it has none: a model of CNTK, of an earlier version, or no model."""
        found = read_training(model) or {}
        epochs, settings = found.get("epochs"), found.get("settings")
        if not isinstance(epochs, int) or not isinstance(settings, dict):
            return None
        texts = {name: str(text) for name, text in cast("dict[str, object]", settings).items()}
        return cls(epochs, texts, bool(found.get("ended")), str(found.get("keeps", "")))


def is_final(model_path: str, max_epochs: int) -> bool:
    """Whether the final model has this many epochs, or more; one that tells nothing of its training has them."""
    record = TrainingRecord.of(model_path)
    return record is None or record.ended or record.epochs >= max_epochs


def continue_final(model_path: str, max_epochs: int) -> None:
    """See that a finished training can continue to more epochs: its final model becomes the one after its last epoch.

    The final model stays until the next one takes its place.
    """
    record = TrainingRecord.of(model_path)
    if record is None or record.ended or record.epochs >= max_epochs:
        return
    model = model_name(model_path, record.epochs, max_epochs)
    for before, after in ((checkpoint_name(model_path), checkpoint_name(model)), (model_path, model)):
        with contextlib.suppress(FileNotFoundError):
            stat = Path(before).stat()
            later = _seconds(after)
            if later is not None and later >= int(stat.st_mtime):
                continue
            with open_input(before) as source, atomic_write(after, through_link=False) as target:
                shutil.copyfileobj(source, target, 1 << 20)
            os.utime(after, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def find_start(model_path: str, max_epochs: int) -> int | None:
    """How many epochs are done: the newest model that is not older than its predecessor.

    Times are compared in whole seconds, as CNTK does: a stale later file of an abandoned run does not count. A final
    model that says that it has fewer epochs is not the final one.

    Returns:
        The number of epochs; None if there is no model.
    """
    for epoch in sorted(_epochs_with_models(Path(model_path), max_epochs), reverse=True):
        if epoch == max_epochs and not is_final(model_path, max_epochs):
            continue
        time = _seconds(model_name(model_path, epoch, max_epochs))
        previous = _seconds(model_name(model_path, epoch - 1, max_epochs)) if epoch else None
        if time is not None and (previous is None or time >= previous):
            return epoch
    return None


def _epochs_with_models(path: Path, max_epochs: int) -> set[int]:
    """Epochs of which a file has the name; a folder is listed, for there may be a million epochs."""
    try:
        names = [one.name.lower() for one in path.parent.iterdir()]  # some systems ignore case
    except OSError:
        return set()
    own = path.name.lower()
    numbers = [name.removeprefix(f"{own}.") for name in names if name.startswith(f"{own}.")]
    # ASCII digits without leading zeros, of which there are at most as many as the number of epochs has
    usual = [n for n in numbers if n.isascii() and n.isdigit() and len(n) <= len(str(max_epochs)) and n == str(int(n))]
    return {int(n) for n in usual if int(n) < max_epochs} | ({max_epochs} if own in names else set())


@dataclass
class Checkpoint:
    """What the trainer knows after an epoch, beside the model.

    Attributes:
        samples_seen: over all epochs.
        rate: learning rate per sample after the adjustments of this epoch; `None` if it is not known.
        reference: the criterion value that later epochs are compared with; infinite if there is none yet.
        minibatch_size: as chosen for this epoch.
        update_state: per parameter, the arrays of the update rule.
        reader: position of the training reader.
        extra: further JSON-able values by name.
    """

    samples_seen: int = 0
    rate: float | None = None
    reference: float = float("inf")
    minibatch_size: int = 0
    update_state: dict[str, Arrays] = field(default_factory=dict[str, Arrays])
    reader: dict[str, Any] = field(default_factory=dict[str, Any])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    def save(self, path: str) -> None:
        """Write the checkpoint in one step.

        Raises:
            UserError: if the disk does not take it.
        """
        arrays = {f"{name}\n{key}": value for name, state in self.update_state.items() for key, value in state.items()}
        values = {
            "samples_seen": self.samples_seen,
            "rate": self.rate,
            "reference": repr(self.reference),
            "minibatch_size": self.minibatch_size,
            "reader": self.reader,
            "extra": self.extra,
        }
        save_arrays(path, FORMAT, arrays, values)

    @classmethod
    def load(cls, path: str) -> "Checkpoint":
        """Read a checkpoint.

        Raises:
            FileNotFoundError: if there is none.
            UserError: if it is no whole checkpoint of ours.
        """
        arrays, values = load_arrays(path, FORMAT, _FIELDS)
        try:
            reference = float(values["reference"])
        except ValueError as error:
            raise not_a_checkpoint(path, str(error)) from None
        state: dict[str, Arrays] = {}
        for key, array in arrays.items():
            name, _, part = key.partition("\n")
            state.setdefault(name, {})[part] = array
        return cls(
            values["samples_seen"],
            values["rate"],
            reference,
            values["minibatch_size"],
            state,
            values["reader"],
            values["extra"],
        )


def superseded(epoch: int, interval: int | None) -> set[int]:
    """After how many epochs the checkpoints were made that are not needed once that of epoch index `epoch` is saved.

    Args:
        interval: epochs between decisions on the learning rate that may go back to the last one;
            `None` if there are none.
    """
    if interval is None:
        return {epoch}
    k = epoch % interval + 1
    found: set[int] = {epoch} if k != 1 else set()
    if k == interval:
        found.add(epoch + 1 - interval)
    return found


def remove_stale_partials(model_path: str, epoch: int | None) -> None:
    """Delete the states inside other epochs than the one that follows `epoch`: a killed or older run left them."""
    model = Path(model_path)
    stale = re.compile(rf"{re.escape(model.name)}\.(\d+)\.partial")
    with contextlib.suppress(OSError):
        for path in model.parent.iterdir():
            found = stale.fullmatch(path.name)
            if found and int(found[1]) != epoch:
                path.unlink(missing_ok=True)


def remove(path: str) -> None:
    """Delete a file that may be missing."""
    Path(path).unlink(missing_ok=True)


def _seconds(path: str) -> int | None:
    try:
        return int(Path(path).stat().st_mtime)
    except OSError:
        return None
