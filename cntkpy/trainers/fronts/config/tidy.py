"""Removal of checkpoints and models that nothing needs any more, once the model after an epoch is saved."""

import contextlib

from cntkpy.trainers.checkpoints.checkpoint import (
    Checkpoint,
    TrainingRecord,
    checkpoint_name,
    model_name,
    remove,
    superseded,
)
from cntkpy.trainers.checkpoints.keeping import ALL, BEST, Kept
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.trainers.schedules.rate_control import Options
from cntkpy.trainers.schedules.schedules import Schedules


def remove_needless(p: SGDParameters, done: int, best: int | None, schedules: Schedules, options: Options) -> None:
    """Remove the files that `keepCheckPointFiles` and `keepModels` do not keep.

    Args:
        p: the parameters of the training.
        done: after how many epochs the newest model was saved.
        best: the number of epochs after which the criterion was best.
        schedules, options: of the rate, which say how far the training may go back.
    """
    path = str(p.model_path)
    interval = options.interval if schedules.adjusts_after_epoch and options.load_best else None
    if not p.keep_checkpoints:
        for earlier in superseded(done - 1, interval):
            remove(checkpoint_name(model_name(path, earlier, p.max_epochs)))
    back = interval if interval is not None and done < p.max_epochs else 0
    Kept(p.keep_models, done, best, back).remove_others(path)


def keeps(p: SGDParameters) -> str:
    """Return `keepModels` and `keepCheckPointFiles`, empty where they are not given; models keep them."""
    return " ".join([*([] if p.keep_models == ALL else [p.keep_models]), *(["checkpoints"] * p.keep_checkpoints)])


def remove_left(p: SGDParameters, done: int) -> None:
    """Remove the same when a training resumes: a run that was killed right after it saved its model left it.

    What a run that kept other files left, or one of CNTK, is there on purpose.

    Args:
        p: the parameters of the training.
        done: after how many epochs the newest model was saved, at least 1.

    Raises:
        UserError: The checkpoint is needed to know the best epoch, and is damaged.
    """
    model = model_name(str(p.model_path), done, p.max_epochs)
    record = TrainingRecord.of(model)
    if record is None or record.keeps != keeps(p):
        return
    best = None
    if p.keep_models == BEST:
        with contextlib.suppress(FileNotFoundError):
            best = Checkpoint.load(checkpoint_name(model)).values["schedule"].get("best")
        if best is None:
            return
        best = int(best[0])
    schedules = Schedules(p)
    with contextlib.suppress(OSError):  # a finished model may be in a folder where nothing may be written
        remove_needless(p, done, best, schedules, Options.read(p.auto_adjust, schedules.listed_rates))
