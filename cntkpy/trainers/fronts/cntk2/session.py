"""Training sessions: a trainer, a source of data, and what happens when: progress, checkpoints, tests."""

from __future__ import annotations

import glob
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from cntkpy.cntk_config.base.files import is_file
from cntkpy.cntk_config.base.narrowing import is_several
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.readers import FULL_DATA_SWEEP, MinibatchSource, MinibatchSourceFromData, StreamInformation
from cntkpy.readers.common.planned import State
from cntkpy.readers.common.user_code import calling
from cntkpy.readers.data_api.base import MinibatchSourceBase
from cntkpy.readers.data_api.batches import check_sample
from cntkpy.readers.data_api.source_reader import check_answer
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.fronts.cntk2.checks import check_callback, check_count, check_filename, check_type, is_whole
from cntkpy.trainers.fronts.cntk2.schedules import Schedule, as_schedule
from cntkpy.trainers.fronts.cntk2.tester import Tester
from cntkpy.trainers.fronts.cntk2.trainer import Trainer
from cntkpy.trainers.log.totals import Totals


class DataUnit(Enum):
    """Unit of a frequency."""

    sample = 0
    minibatch = 1
    sweep = 2


Frequency = int | tuple[int, DataUnit]
"""So many samples, or so many of a unit."""


@dataclass(frozen=True)
class Every:
    """A frequency.

    Args:
        count: so many.
        unit: of what.
    """

    count: int
    unit: DataUnit

    @classmethod
    def of(cls, frequency: Frequency | None) -> Every | None:
        """Return the frequency that a program gives; None and 0 are never."""
        if frequency is None or frequency == 0:
            return None
        pair: Any = frequency if isinstance(frequency, tuple) else (frequency, DataUnit.sample)
        count, unit = pair if len(pair) == 2 else (0, None)
        if not isinstance(unit, DataUnit) or not is_whole(count) or count < 1:
            raise ArgumentError(f"{frequency!r} is not a frequency", "write 1000, or (1, DataUnit.sweep)")
        return cls(int(count), unit)

    def position(self, trainer: Trainer) -> int:
        """Return the number of times that it was due so far."""
        if self.unit is DataUnit.sample:
            return trainer.total_number_of_samples_seen // self.count
        if self.unit is DataUnit.minibatch:
            return trainer.total_number_of_updates // self.count
        return trainer.total_number_of_sweeps // self.count

    def samples_left(self, trainer: Trainer) -> int | None:
        """Samples until it is due; None where it does not count samples."""
        if self.unit is not DataUnit.sample:
            return None
        return self.count - trainer.total_number_of_samples_seen % self.count


@dataclass(frozen=True)
class CheckpointConfig:
    """When checkpoints are written.

    Args:
        filename: of the model; the state of training is next to it (`.ckp`).
        frequency: how often; None: at the end only.
        restore: resume from the last one, if there is one: that of the name, else that of the highest number.
        preserve_all: keep all of them, under the name with their numbers after, from 0 on.
    """

    filename: str | Path
    frequency: Frequency | None = None
    restore: bool = True
    preserve_all: bool = False

    def __post_init__(self) -> None:
        check_filename(self.filename)
        Every.of(self.frequency)


Callback = Callable[[int, float, int, int], bool | None]
"""Gets the number of the evaluation, the metric, samples and minibatches; False ends training."""


@dataclass(frozen=True)
class CrossValidationConfig:
    """Evaluations during training.

    Args:
        minibatch_source: of the data; it is read from where it is at the beginning of the session. Or arrays, one
            for each input of the criterion.
        frequency: how often; None, or `sys.maxsize` samples: once, when training ends. 0: never.
        minibatch_size: in samples.
        callback: called with the result.
        max_samples: of an evaluation; None: all that the source has.
        model_inputs_to_streams: the streams of inputs; None: as in training, by the names of the streams.
        criterion: the metric, or loss and metric; None: that of the trainer.

    Without a source the callback alone is called, with 0 as the metric: it may evaluate something itself.
    """

    minibatch_source: Any = None
    frequency: Frequency | None = None
    minibatch_size: int | Schedule = 32
    callback: Callback | None = None
    max_samples: int | None = None
    model_inputs_to_streams: Mapping[Function, StreamInformation] | None = None
    criterion: Function | None = None

    def __post_init__(self) -> None:
        _take_arrays(self)
        _check_evaluation(self.minibatch_source, self.minibatch_size, self.criterion)
        if self.callback is not None:
            check_callback(self.callback)
        if self.minibatch_source is None and self.callback is None and self.frequency:
            raise ArgumentError("a cross validation needs data, or a callback that evaluates", "minibatch_source=...")
        Every.of(self.frequency)
        check_count("max_samples", self.max_samples)


@dataclass(frozen=True)
class TestConfig:
    """The evaluation after training.

    Args:
        minibatch_source: of the data; or arrays, one for each input of the criterion.
        minibatch_size: in samples.
        model_inputs_to_streams: the streams of inputs; None: as in training, by the names of the streams.
        criterion: the metric, or loss and metric; None: that of the trainer.
    """

    __test__ = False  # pytest would take it for a test

    minibatch_source: Any
    minibatch_size: int | Schedule = 32
    model_inputs_to_streams: Mapping[Function, StreamInformation] | None = None
    criterion: Function | None = None

    def __post_init__(self) -> None:
        _take_arrays(self)
        hint = "MinibatchSource(..., max_sweeps=1)"
        check_type("the source of minibatches", self.minibatch_source, MinibatchSourceBase, hint)
        _check_evaluation(self.minibatch_source, self.minibatch_size, self.criterion)


def from_arrays(
    arrays: Sequence[object], function: Function, max_samples: int
) -> tuple[MinibatchSourceBase, dict[Function, StreamInformation]]:
    """Return a source of arrays, one for each input of a function, and the streams of the inputs."""
    inputs = function.arguments
    if len(arrays) != len(inputs):
        raise ArgumentError(f"{len(arrays)} arrays for a function of {len(inputs)} inputs", "one array for each input")
    source = MinibatchSourceFromData({f"input{number}": array for number, array in enumerate(arrays)}, max_samples)
    return source, dict(zip(inputs, source.stream_infos(), strict=True))


def _take_arrays(config: CrossValidationConfig | TestConfig) -> None:
    """Let arrays become a source."""
    if is_several(config.minibatch_source):
        if config.criterion is None:
            raise ArgumentError("arrays are given to the inputs of a criterion", "criterion=...")
        check_type("a criterion", config.criterion, Function, "classification_error(z, y)")
        source, inputs = from_arrays(config.minibatch_source, config.criterion, FULL_DATA_SWEEP)
        object.__setattr__(config, "minibatch_source", source)
        object.__setattr__(config, "model_inputs_to_streams", inputs)


def _check_evaluation(source: object, size: int | Schedule, criterion: object) -> None:
    if source is not None:
        check_type("the source of minibatches", source, MinibatchSourceBase, "MinibatchSource(..., max_sweeps=1)")
    if criterion is not None:
        check_type("a criterion", criterion, Function, "classification_error(z, y)")
    _size(size)


class Feed:
    """A minibatch source as minibatches of a network.

    Args:
        trainer: of the network.
        source: of the data.
        inputs: the stream of every input.
        shared: every worker reads a part; else all of it.
    """

    def __init__(
        self,
        trainer: Trainer | Tester,
        source: MinibatchSourceBase,
        inputs: Mapping[Function, StreamInformation],
        shared: bool = True,
    ) -> None:
        self.source = source
        check_type("the source of minibatches", source, MinibatchSourceBase, "MinibatchSource(CTFDeserializer(...))")
        hint = "model_inputs_to_streams={input: source.streams.name, ...}"
        check_type("model_inputs_to_streams", inputs, Mapping, hint)
        self._trainer = trainer if shared and isinstance(trainer, Trainer) else None
        self._name = type(source).__name__
        self._minibatch = trainer.minibatch
        self._streams: dict[str, str] = {}
        self._functions: dict[str, Function] = {}
        names = {stream.name for stream in source.stream_infos()}
        for argument in trainer.arguments.inputs:
            stream = inputs.get(argument.function)
            if stream is None:
                raise ArgumentError(
                    f"there is no stream for the {argument}", "model_inputs_to_streams={input: stream, ...}"
                )
            check_type(f"the stream of the {argument}", stream, StreamInformation, hint)
            if stream.name not in names:
                raise ArgumentError(f"{self._name} has no stream '{stream.name}'", f"it has {', '.join(names)}")
            if isinstance(source, MinibatchSource) and min(argument.function.shape, default=1) > 0:
                check_sample(stream.sample_shape, replace(argument.axes, name=f"{argument} (stream '{stream.name}')"))
            self._streams[argument.node.name] = stream.name
            self._functions[argument.node.name] = argument.function

    def next(self, size: int) -> Minibatch | None:
        """Return the next minibatch of about `size` samples of all workers; None at the end."""
        trainer = self._trainer
        workers, rank = (1, 0) if trainer is None else trainer.workers.share(trainer.total_number_of_samples_seen)
        if isinstance(self.source, MinibatchSource):
            minibatch = self.source.next_plain(size, workers, rank)
        else:
            call = f"{self._name}.next_minibatch({size}, {workers}, {rank})"
            with calling(call):
                answer = self.source._next(size, workers, rank)  # pyright: ignore[reportPrivateUsage]
            check_answer(answer, list(self.source.stream_infos()), call)
            return self._read(answer, call) if answer else None
        if minibatch is None:
            return None
        streams = {node: minibatch.streams[stream] for node, stream in self._streams.items()}
        layouts = {node: minibatch.layouts[stream] for node, stream in self._streams.items()}
        return Minibatch(streams, layouts, list, minibatch.end_of_sweep, truncated=minibatch.truncated)  # pyright: ignore

    def _read(self, answer: Mapping[StreamInformation, object], call: str) -> Minibatch:
        """Return the minibatch of what a source of the program's own gave."""
        by_name = {stream.name: data for stream, data in answer.items()}
        try:
            return self._minibatch(
                {self._functions[name]: by_name[stream] for name, stream in self._streams.items()}, continued=True
            )
        except ArgumentError as error:
            raise ArgumentError(f"{call}: {error.message}", error.hint) from None


class Evaluations:
    """Evaluates a trainer on data.

    Args:
        trainer: The trainer.
        inputs: The streams of its inputs in training.
    """

    def __init__(self, trainer: Trainer, inputs: Mapping[Function, StreamInformation]) -> None:
        self._trainer, self._inputs = trainer, inputs

    def run(self, config: CrossValidationConfig | TestConfig, most: int | None = None) -> Totals:
        """Evaluate on the data of a configuration, on at most so many samples; None: on all."""
        source, criterion, inputs = config.minibatch_source, config.criterion, config.model_inputs_to_streams
        if most is None and source.is_infinite():
            raise ArgumentError("the data of an evaluation have no end", "MinibatchSource(..., max_sweeps=1)")
        metric = None if criterion is None else criterion.outputs[:2][-1]
        tester = self._trainer if metric is None else Tester(metric, self._trainer.progress_writers)
        feed = Feed(tester, source, self._streams_of(source) if inputs is None else inputs, shared=False)
        totals, size = Totals(), _size(config.minibatch_size)
        while most is None or totals.samples < most:
            wanted = int(size.at(totals.samples))
            minibatch = feed.next(wanted if most is None else min(wanted, most - totals.samples))
            if minibatch is None:
                break
            if minibatch.num_samples:
                totals = totals.plus(tester.test(minibatch))
        tester.summarize_test_progress()
        return totals

    def _streams_of(self, source: MinibatchSourceBase) -> dict[Function, StreamInformation]:
        """Return the streams of the same names as those of training."""
        known = {stream.name: stream for stream in source.stream_infos()}
        return {function: known[stream.name] for function, stream in self._inputs.items() if stream.name in known}


class TrainingSession:
    """Trains until the data end or enough samples were seen.

    Args:
        trainer: what is trained.
        mb_source: the data.
        mb_size: samples of a minibatch, or a schedule of them.
        model_inputs_to_streams: the stream of every input.
        max_samples: of the whole training, those before a restart included; None: until the data end.
        progress_frequency: how often progress is summed up; None: at the end. Minibatches end where it does, but those
            of truncated sequences, which keep their size.
        checkpoint_config: when checkpoints are written.
        cv_config: evaluations meanwhile.
        test_config: the evaluation at the end.
        max_sweeps: passes over the data, of the whole training; None: until the data end.
    """

    def __init__(
        self,
        trainer: Trainer,
        mb_source: MinibatchSourceBase,
        mb_size: int | Schedule,
        model_inputs_to_streams: Mapping[Function, StreamInformation],
        max_samples: int | None = None,
        progress_frequency: Frequency | None = None,
        checkpoint_config: CheckpointConfig | None = None,
        cv_config: CrossValidationConfig | None = None,
        test_config: TestConfig | None = None,
        max_sweeps: int | None = None,
    ) -> None:
        check_type("the trainer of a session", trainer, Trainer, "Trainer(z, (loss, metric), learner)")
        for name, value, kind in (
            ("checkpoint_config", checkpoint_config, CheckpointConfig),
            ("cv_config", cv_config, CrossValidationConfig),
            ("test_config", test_config, TestConfig),
        ):
            if value is not None:
                check_type(name, value, kind, f"{name}={kind.__name__}(...)")
        check_count("max_samples", max_samples)
        check_count("max_sweeps", max_sweeps)
        self.trainer = trainer
        self._evaluations = Evaluations(trainer, model_inputs_to_streams)
        self._feed = Feed(trainer, mb_source, model_inputs_to_streams)
        self._size = _size(mb_size)
        self._max = None if max_samples is None else int(max_samples)
        self._max_sweeps = max_sweeps
        if max_samples is None and max_sweeps is None and mb_source.is_infinite():
            raise ArgumentError("the session has no end: neither max_samples nor the source has one", "max_samples=...")
        self._progress = Every.of(progress_frequency)
        # Another size is another number of slots there, for which the source drops the sequences that it has begun.
        self._cuts = not (isinstance(mb_source, MinibatchSource) and mb_source.config.get("truncated"))
        self._checkpoint = checkpoint_config
        self._saves = Every.of(checkpoint_config.frequency) if checkpoint_config is not None else None
        self._cv = cv_config
        self._validates = Every.of(cv_config.frequency) if cv_config is not None else None
        self._validates_at_end = cv_config is not None and _is_at_end(cv_config)
        self._test = test_config
        self._cv_count = 0

    def train(self, device: object = None) -> None:
        """Train to the end.

        Args:
            device: accepted; changes nothing.

        Raises:
            UserError: the criterion is not a number, or the data are wrong.
        """
        del device
        trainer = self.trainer
        self._restore()
        start: dict[str, Any] = {}
        if self._cv is not None and self._cv.minibatch_source is not None:
            start = self._cv.minibatch_source.get_checkpoint_state()
        for writer in trainer.progress_writers:
            writer.start_clock()
        trainer.queue.always_stacked = True
        positions = self._positions()
        going_on = True
        while going_on and (size := self._next_size()) > 0:
            if not trainer.train(self._feed.next(size)):
                break
            if positions is None:
                continue
            now = self._positions()
            assert now is not None
            due = [current != previous for current, previous in zip(now, positions, strict=True)]
            positions = now
            if due[0]:
                trainer.summarize_training_progress()
            if due[2]:
                going_on = self._cross_validate(start)
            if due[1]:
                self._save(now[1] - 1)
        trainer.queue.collect()
        if trainer.has_unreported:
            trainer.summarize_training_progress()
        self._end(start)

    def _end(self, start: State) -> None:
        """Finish after the last minibatch; `start` is the position at which the data of evaluations begin."""
        if self._validates_at_end:
            self._cross_validate(start)
        if self._checkpoint is not None:
            self._save()
        if self._test is not None:
            self._evaluations.run(self._test)

    def _positions(self) -> list[int] | None:
        """Return the numbers of times that progress, a checkpoint and an evaluation were due; None: they never are."""
        every = (self._progress, self._saves, self._validates)
        if self._progress is self._saves is self._validates is None:
            return None
        return [0 if frequency is None else frequency.position(self.trainer) for frequency in every]

    def _next_size(self) -> int:
        """Samples to ask for."""
        trainer = self.trainer
        seen, sweeps = trainer.total_number_of_samples_seen, trainer.total_number_of_sweeps
        if self._max_sweeps is not None and sweeps >= self._max_sweeps:
            return 0
        size = int(self._size.at(seen, sweeps))
        if self._max is not None:
            size = min(size, self._max - seen)
        if self._progress is not None and self._cuts:
            until = self._progress.samples_left(trainer)
            size = size if until is None else min(size, until)
        return size

    # ------------------------------------------------------------------------------------------------- tests

    def _cross_validate(self, start: State) -> bool:
        """Evaluate; whether training resumes."""
        config = self._cv
        assert config is not None
        totals = Totals()
        if config.minibatch_source is not None:
            if start:
                config.minibatch_source.restore_from_checkpoint(start)
            totals = self._evaluations.run(config, config.max_samples)
        self._cv_count += 1
        answer: Any = self.on_cross_validation_end(
            self._cv_count - 1, totals.average_metric, totals.samples, totals.minibatches
        )
        return answer is not False

    def on_cross_validation_end(
        self, index: int, average_error: float, num_samples: int, num_minibatches: int
    ) -> bool | None:
        """Called after each evaluation; a subclass may override it. This one calls the callback of the `cv_config`.

        Args:
            index: the number of the evaluation, from 0 on.
            average_error: the metric per sample.
            num_samples: of the evaluation.
            num_minibatches: of the same.

        Returns:
            False ends training.
        """
        if self._cv is None or self._cv.callback is None:
            return True
        return self._cv.callback(index, average_error, num_samples, num_minibatches)

    # ------------------------------------------------------------------------------------------------- checkpoints

    def _restore(self) -> None:
        config = self._checkpoint
        filename = None if config is None or not config.restore else _last_checkpoint(str(config.filename))
        if filename is None:
            return
        state = self.trainer.restore_from_checkpoint(filename)
        if not isinstance(state, dict) or "source" not in state:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"{filename}.ckp is not a checkpoint of a session", "choose another filename")
        self._cv_count = int(state["evaluations"])
        with calling(f"{type(self._feed.source).__name__}.restore_from_checkpoint(...)"):
            self._feed.source.restore_from_checkpoint(state["source"])

    def _save(self, number: int | None = None) -> None:
        """Write a checkpoint; `number`: of one before the end, from 0 on."""
        config = self._checkpoint
        assert config is not None
        with calling(f"{type(self._feed.source).__name__}.get_checkpoint_state()"):
            position = self._feed.source.get_checkpoint_state()
        state = {"source": position, "evaluations": self._cv_count}
        self.trainer.save_checkpoint(config.filename, state)
        if config.preserve_all and number is not None:
            self.trainer.save_checkpoint(f"{config.filename}{number}", state)


def _last_checkpoint(filename: str) -> str | None:
    """Return the name of a checkpoint: this one, else the same with the highest number after it; None: none."""
    if is_file(f"{filename}.ckp"):
        return filename
    path = Path(filename)
    names = (file.name.removesuffix(".ckp") for file in path.parent.glob(f"{glob.escape(path.name)}*.ckp"))
    numbers = [name.removeprefix(path.name) for name in names]
    known = [number for number in numbers if number.isdecimal()]
    return filename + max(known, key=int) if known else None


def _is_at_end(config: CrossValidationConfig) -> bool:
    """Return whether there is one evaluation, when training ends."""
    every = config.frequency[0] if isinstance(config.frequency, tuple) else config.frequency
    something = config.minibatch_source is not None or config.callback is not None
    return something and (every is None or every >= sys.maxsize)


def _size(size: int | Schedule) -> Schedule:
    schedule = as_schedule(size)
    if not schedule.all_whole:
        raise ArgumentError(f"{size!r} is not a minibatch size", "whole numbers from 1 on")
    return schedule
