"""The files of a training: their names, where to resume, and the checkpoint of the trainer's own state.

Names and the rule for resuming are CNTK's (docs/specification/actions-and-training.md 3). The content is ours:
safetensors with the optimiser's arrays, and the scalars, schedules and the reader's position as JSON.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import open_input
from cntkpy.cntk_config.base.names import shareable
from cntkpy.cntk_config.base.retry import cure
from cntkpy.cntk_config.base.writing import atomic_write, shown
from cntkpy.networks.files.cntk_binary.recognise import is_cntk
from cntkpy.networks.files.model_file import read_training
from cntkpy.networks.files.tensor_file import Damaged, TensorFile, write_tensors

FORMAT = "cntkpy training 1"
RATE_OUTSIDE = "rate outside"
"""The value of a program's checkpoint of version 0.1, whose velocities were without the learning rate."""
Arrays = dict[str, NDArray[Any]]
"""By name, arrays of the host."""


def model_name(model_path: str, epoch: int, max_epochs: int) -> str:
    """Return the model file after `epoch` epochs: `P.0` to `P.{max_epochs-1}`, and `P` itself at the end."""
    return model_path if epoch >= max_epochs else f"{model_path}.{epoch}"


def checkpoint_name(model: str) -> str:
    """Return the checkpoint that belongs to a model file."""
    return model + ".ckp"


def partial_name(model: str) -> str:
    """Return the file of the state inside the epoch that follows a model file (ours)."""
    return model + ".partial"


@dataclass(frozen=True)
class TrainingRecord:
    """The record of a training that its model files keep.

    Args:
        epochs: number of epochs that were trained.
        settings: the parameters that were given, their texts by path.
        ended: training was over, whatever the number of epochs that were asked for.
        keeps: which files besides all models were kept, see `cntkpy.trainers.fronts.config.tidy.keeps`.
    """

    epochs: int
    settings: dict[str, str]
    ended: bool = False
    keeps: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        flags = ({"ended": True} if self.ended else {}) | ({"keeps": self.keeps} if self.keeps else {})
        return {"epochs": self.epochs, "settings": shareable(self.settings), **flags}

    @classmethod
    def of(cls, model: str) -> "TrainingRecord | None":
        """Return the record of a model file; None if it has none: it is of CNTK, of an earlier version, or no model."""
        record = read_training(model) or {}
        epochs, settings = record.get("epochs"), record.get("settings")
        if not isinstance(epochs, int) or not isinstance(settings, dict):
            return None
        texts = {name: str(text) for name, text in cast("dict[str, object]", settings).items()}
        return cls(epochs, texts, bool(record.get("ended")), str(record.get("keeps", "")))


def is_final(model_path: str, max_epochs: int) -> bool:
    """Return whether the final model has this many epochs, or more; one that tells nothing of its training has them."""
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
    for previous, after in ((checkpoint_name(model_path), checkpoint_name(model)), (model_path, model)):
        with contextlib.suppress(FileNotFoundError):
            stat = Path(previous).stat()
            later = _seconds(after)
            if later is not None and later >= int(stat.st_mtime):
                continue
            with open_input(previous) as source, atomic_write(after, through_link=False) as target:
                shutil.copyfileobj(source, target, 1 << 20)
            os.utime(after, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def find_start(model_path: str, max_epochs: int) -> int | None:
    """Return the number of finished epochs: that of the newest model that is not older than its predecessor.

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
        names = [file.name.lower() for file in path.parent.iterdir()]  # some systems ignore case
    except OSError:
        return set()
    file_name = path.name.lower()
    numbers = [name.removeprefix(f"{file_name}.") for name in names if name.startswith(f"{file_name}.")]
    # ASCII digits without leading zeros, of which there are at most as many as the number of epochs has
    usual = [n for n in numbers if n.isascii() and n.isdigit() and len(n) <= len(str(max_epochs)) and n == str(int(n))]
    return {int(n) for n in usual if int(n) < max_epochs} | ({max_epochs} if file_name in names else set())


EPOCH, INSIDE, PROGRAM = "epoch", "inside an epoch", "program"
"""Kinds of checkpoints: after an epoch, next to a model; inside an epoch; of a program, next to a model."""

_FIELDS: dict[str, dict[str, Any]] = {
    EPOCH: {
        "samples_seen": int,
        "rate": float | int | None,
        "reference": float | int,
        "minibatch_size": int,
        "reader": dict,
        "schedule": dict,
    },
    INSIDE: {"position": dict, "reader": (dict, list), "shapes": (dict, list), "settings": dict},
    PROGRAM: {
        "samples": int,
        "updates": int,
        "sweeps": int,
        "totals": list,
        "shapes": object,
        "writers": list,
        "external": list,
        "workers": int,
    },
}
"""By kind, the values that must be there, and their types."""


@dataclass
class Checkpoint:
    """Everything that a training needs to resume, besides the model next to it.

    Attributes:
        kind: `EPOCH`, `INSIDE` or `PROGRAM`.
        values: JSON-able, by name; infinite and undefined numbers are fine. Of an epoch: `samples_seen` over all
            epochs; `rate` per sample after its adjustments, None: not known; `reference`, the criterion that later
            epochs are compared with; `minibatch_size` chosen for it; `reader`, the position of the training reader;
            `schedule`, see `cntkpy.trainers.fronts.config.state`. For the others see what makes them.
        arrays: as `cntkpy.trainers.step.placement.Placement.snapshot` names them; those of an epoch have only
            `update` arrays.
    """

    kind: str
    values: dict[str, Any]
    arrays: Arrays

    def save(self, path: str) -> None:
        """Write the checkpoint so that `path` is either the old one or the whole new one.

        Raises:
            UserError: the disk does not take it.
        """
        metadata = json.dumps({"format": FORMAT, "kind": self.kind, **self.values})
        try:
            arrays = {name: np.asarray(array) for name, array in self.arrays.items()}
            write_tensors(path, arrays, {"cntkpy": metadata}, through_link=False)
        except OSError as error:
            raise UserError(
                "CannotWrite", f"cannot write the checkpoint {shown(path)}: {error.strerror or error}"
            ) from None

    @classmethod
    def load(cls, path: str, kind: str = EPOCH) -> "Checkpoint":
        """Read a checkpoint, one of version 0.1 as well.

        Raises:
            FileNotFoundError: there is none.
            UserError: it cannot be read, or is no whole checkpoint of this kind.
        """
        try:
            with TensorFile(path) as file:
                values = json.loads(file.metadata["cntkpy"])
                arrays = {name: file.read(name) for name in file.entries}
            checkpoint = cls(*_read(values.pop("format"), values, arrays))
            if checkpoint.kind != kind:
                raise ValueError(f"it is one of another kind ({checkpoint.kind})")
            for name, type_ in _FIELDS[kind].items():
                if name not in checkpoint.values or not isinstance(checkpoint.values[name], type_):
                    raise ValueError(f"its field '{name}' is missing or of another type")
            if any(path.startswith("update\n") and path.count("\n") != 2 for path in checkpoint.arrays):
                raise ValueError("the name of an array is not one of a checkpoint")
        except FileNotFoundError:
            raise
        except OSError as error:  # nothing is said against the file
            raise UserError(
                "CannotRead", f"cannot read the checkpoint {path}: {error.strerror or error}", hint=cure(error)
            ) from None
        except (Damaged, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            why = "it is one of CNTK" if is_cntk(path) else str(error)
            raise not_a_checkpoint(path, why, kind) from None
        return checkpoint

    @staticmethod
    def update_paths(updates: Mapping[str, Arrays]) -> Arrays:
        """Return the arrays of an update rule as `arrays` names them."""
        return {f"update\n{name}\n{key}": array for name, state in updates.items() for key, array in state.items()}

    @property
    def updates(self) -> dict[str, Arrays]:
        """By parameter, the arrays of the update rule."""
        updates: dict[str, Arrays] = {}
        for path, array in self.arrays.items():
            if path.startswith("update\n"):
                _, name, key = path.split("\n")
                updates.setdefault(name, {})[key] = array
        return updates


def _read(version: str, values: dict[str, Any], arrays: Arrays) -> tuple[str, dict[str, Any], Arrays]:
    """Return kind, values and arrays of a checkpoint of some version of the format."""
    if version == FORMAT:
        return values.pop("kind"), values, arrays
    if version == "cntkpy checkpoint 1":
        values |= {"schedule": values.pop("extra").get("schedule", {}), "reference": float(values["reference"])}
        return EPOCH, values, {f"update\n{path}": array for path, array in arrays.items()}
    if version == "cntkpy partial epoch 1":
        return INSIDE, values, arrays
    if version == "cntkpy session 1":
        return PROGRAM, values | {RATE_OUTSIDE: True}, arrays
    raise ValueError("another format")


def not_a_checkpoint(path: str, why: str, kind: str = EPOCH) -> UserError:
    """Return the error of a file that is damaged, or of another version; `kind` is that which was wanted."""
    hint = "delete it to resume from the model alone, or set makeMode=false to start again"
    if kind == PROGRAM:
        hint = "name another checkpoint; a session starts again with CheckpointConfig(..., restore=False)"
    return UserError("BadCheckpoint", f"'{path}' is not a checkpoint of this version of cntkpy: {why}", hint=hint)


def superseded(epoch: int, interval: int | None) -> set[int]:
    """Return the epochs whose checkpoints are superseded once that of epoch index `epoch` is saved.

    Args:
        interval: epochs between decisions on the learning rate that may go back to the last one;
            `None` if there are none.
    """
    if interval is None:
        return {epoch}
    k = epoch % interval + 1
    epochs: set[int] = {epoch} if k != 1 else set()
    if k == interval:
        epochs.add(epoch + 1 - interval)
    return epochs


def remove_stale_partials(model_path: str, epoch: int | None) -> None:
    """Delete the states inside other epochs than the one that follows `epoch`: a killed or older run left them."""
    model = Path(model_path)
    stale = re.compile(rf"{re.escape(model.name)}\.(\d+)\.partial")
    with contextlib.suppress(OSError):
        for path in model.parent.iterdir():
            match = stale.fullmatch(path.name)
            if match and int(match[1]) != epoch:
                path.unlink(missing_ok=True)


def remove(path: str) -> None:
    """Delete a file that may be missing."""
    Path(path).unlink(missing_ok=True)


def _seconds(path: str) -> int | None:
    try:
        return int(Path(path).stat().st_mtime)
    except OSError:
        return None
