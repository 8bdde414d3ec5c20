"""Trials in processes, several at a time: started, followed, ended, and written down."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.names import masked
from cntkpy.cntk_config.base.stopping import UNSAVED
from cntkpy.cntk_config.base.systems import cores
from cntkpy.cntk_config.base.systems.locks import CAN_BE_PASSED_ON
from cntkpy.cntk_config.base.systems.processes import name_of_end, pass_on
from cntkpy.cntk_config.base.writing import open_in_place
from cntkpy.commands.context import processes
from cntkpy.commands.runner.cores import shares, sharing, started_on
from cntkpy.commands.sweeps.choices import Space
from cntkpy.commands.sweeps.console import Console
from cntkpy.commands.sweeps.criterion import Criterion, Progress
from cntkpy.commands.sweeps.outputs import tracking_word
from cntkpy.commands.sweeps.rows import Row, Rows, State
from cntkpy.commands.sweeps.study import Study, Trial
from cntkpy.commands.sweeps.trial_folder import OUTPUT, Follower, seconds_of

POLL_SECONDS = 0.05
BUSY_SECONDS, ASK_SECONDS = 40.0, 0.5
"""Seconds to wait for trials of other processes, and between queries: what a killed sweep has started needs 30 s."""
SIGNAL_SECONDS = 1.0
"""A signal that has ended a trial reaches the sweep within this time, if it was meant for both."""
SIGNALLED = (128 + signal.SIGINT, 128 + signal.SIGTERM)
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
"""JAX's variable; by default each process takes most of the memory of a GPU."""


@dataclass
class _Running:
    """A trial that runs in a slot."""

    trial: Trial
    process: subprocess.Popen[bytes]
    follower: Follower
    progress: Progress
    slot: int
    begun: float
    earlier: float
    pruned: bool = False

    @property
    def seconds(self) -> float:
        return self.earlier + time.monotonic() - self.begun


@dataclass
class Runner:
    """Runs the trials of a study.

    Attributes:
        space: the words.
        study: says which trial comes next.
        criterion: by which trials are compared.
        rows: where their ends are written down.
        jobs: how many run at a time.
        console: where it prints.
        track: places that all trials are tracked at, `TYPE:TARGET` each.
    """

    space: Space
    study: Study
    criterion: Criterion
    rows: Rows
    jobs: int
    console: Console
    track: tuple[str, ...] = ()
    _running: list[_Running] = field(default_factory=list[_Running])
    _signal: int | None = None

    def run(self) -> int | None:
        """Run trials until none is left; the number of the signal that has ended it before, or None.

        Raises:
            UserError: the storage of the study cannot be used; the trials that run are asked to end.
            OSError: a file cannot be read or written; the same.
        """
        with self._signals():
            try:
                self._loop()
            finally:
                for running in self._running:  # after an error of ours
                    running.process.terminate()
        return self._signal

    def _loop(self) -> None:
        asked, waited = 0.0, None
        while True:
            while self._signal is None and len(self._running) < self.jobs and time.monotonic() >= asked:
                trial = self.study.next()
                if trial is None:
                    asked = time.monotonic() + ASK_SECONDS
                elif self._signal is None:
                    self._start(trial)
                else:
                    trial.release()
            for running in list(self._running):
                self._look(running)
            if not self._running:
                if self._signal is not None or (asked and not self.study.busy):
                    return
                now = time.monotonic()
                waited = waited or now
                if asked and now - waited > BUSY_SECONDS:
                    numbers = ", ".join(map(str, sorted(self.study.busy)))
                    self.console.say(f"other processes run the trials {numbers}")
                    return
            else:
                waited = None
            self.console.show(running_text([(running.trial.number, running.progress) for running in self._running]))
            time.sleep(POLL_SECONDS)

    def _start(self, trial: Trial) -> None:
        """Start a trial, or write it down where an earlier process came to its end without doing so."""
        earlier = Progress(self.criterion)
        if trial.folder.is_completed():
            for event in trial.folder.all_events():
                earlier.observe(event)
            self._finish(trial, earlier, seconds_of(trial.folder.all_events()), 0, pruned=False)
            return
        if (known := self._known(trial)) is not None:
            same = known.number if known.same is None else known.same
            self._record(trial, replace(known, number=trial.number, seconds=0.0, same=same))
            return
        begun, slot = time.monotonic(), min(set(range(self.jobs)) - {running.slot for running in self._running})
        try:
            words = trial.folder.words(self.space, trial.values)
        except UserError as error:
            self._write(trial, earlier, time.monotonic() - begun, "failed", error.diagnostic.render())
            return
        trial.folder.begin()
        for event in trial.folder.earlier_events():
            earlier.observe(event)
        seconds = seconds_of(trial.folder.earlier_events())
        words += [tracking_word(place, trial.folder.path.name) for place in self.track]
        process = self._process(words, trial, slot)
        self._running.append(_Running(trial, process, Follower(trial.folder.events), earlier, slot, begun, seconds))

    def _known(self, trial: Trial) -> Row | None:
        """Return the outcome of an earlier trial with the same values, which would be the same again.

        A trial that has failed is tried again: the reason may be gone.
        """
        values = dict(trial.values)
        return next((row for row in self.study.ended() if row.values == values and row.state != "failed"), None)

    def _process(self, words: list[str], trial: Trial, slot: int) -> subprocess.Popen[bytes]:
        own_process = cores.of_process()
        environment = processes.environment()
        share = set(own_process)
        if self.jobs > 1:
            environment = {PREALLOCATE: "false"} | sharing(environment, own_process, self.jobs)
            share = shares(own_process, self.jobs)[slot]
        command = [sys.executable, "-P", "-m", "cntkpy.commands.sweeps.child", *words]
        output = open_in_place(trial.folder.path / OUTPUT, append=True)
        descriptors = (trial.lock,) if CAN_BE_PASSED_ON else ()
        try:
            with started_on(share):
                return subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,  # which the child reads to the end of this process
                    stdout=output,
                    stderr=output,
                    env=environment,
                    pass_fds=descriptors,
                )
        finally:
            os.close(output)

    def _look(self, running: _Running) -> None:
        """Follow a trial: pass its reports on, and write it down when it has ended."""
        status = running.process.poll()
        for event in running.follower.new():
            report = running.progress.observe(event)
            if (
                report is not None
                and not running.pruned
                and self.study.report(running.trial, *report)
                and status is None
            ):
                running.pruned = True
                running.process.terminate()
        if status is None:
            return
        if running.process.stdin is not None:
            running.process.stdin.close()
        if status in SIGNALLED and not running.pruned:
            self._await_signal()
        self._running.remove(running)
        if self._signal is not None and status and not running.pruned:
            running.trial.release()  # it resumes with the sweep
            return
        self._finish(running.trial, running.progress, running.seconds, status, running.pruned and status != 0)

    def _await_signal(self) -> None:
        until = time.monotonic() + SIGNAL_SECONDS
        while self._signal is None and time.monotonic() < until:
            time.sleep(POLL_SECONDS)

    def _finish(self, trial: Trial, progress: Progress, seconds: float, status: int, pruned: bool) -> None:
        trial.folder.end(not status or pruned)
        if pruned:
            self._write(trial, progress, seconds, "pruned", "")
        elif status < 0:
            self._write(trial, progress, seconds, "failed", f"killed by {name_of_end(status)}")
        elif status:
            self._write(trial, progress, seconds, "failed", trial.folder.error(status))
        elif progress.value is None:
            self._write(trial, progress, seconds, "failed", _no_criterion(progress))
        else:
            self._write(trial, progress, seconds, "finished", "")

    def _write(self, trial: Trial, progress: Progress, seconds: float, state: State, error: str) -> None:
        row = Row(trial.number, state, dict(trial.values), progress.value, progress.epochs, seconds, error)
        self._record(trial, row)

    def _record(self, trial: Trial, row: Row) -> None:
        """Write a trial down that has ended."""
        self.rows.append(row)
        self.study.finish(trial, row)
        trial.release()
        self.console.say(describe(row, self.study.size()))

    @contextmanager
    def _signals(self) -> Generator[None]:
        """Meanwhile a signal ends the trials, which save their states, and then the sweep.

        `cntkpy.commands.context.interrupt` ends this process at once otherwise, and does so after 30 seconds.
        """

        def handle(number: int, frame: FrameType | None) -> None:
            self._signal = self._signal or number
            for running in self._running:
                pass_on(running.process, number)

        handlers = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        UNSAVED.set()
        try:
            yield
        finally:
            UNSAVED.clear()
            for number, handler in handlers.items():
                signal.signal(number, handler)


def describe(row: Row, size: int) -> str:
    """Return the line of a trial that has ended."""
    values = shown_values(row.values)
    name = f"trial {row.number} of {size}"
    if row.state == "failed":
        error = masked(row.error.partition("\n")[0]) if row.error else ""
        return f"{name}: failed after {row.seconds:.1f} s  {values}\n  {error}"
    shown = "" if row.criterion is None else f"{row.criterion:.6g}, "
    if row.same is not None:
        return f"{name}: {shown}not trained again, as trial {row.same}  {values}"
    ended = ", ended early" if row.state == "pruned" else ""
    return f"{name}: {shown}{row.epochs} epochs, {row.seconds:.1f} s{ended}  {values}"


def running_text(running: Sequence[tuple[int, Progress]]) -> str:
    """Return the epochs and the criterion of each trial that runs, as one line."""
    return "; ".join(
        f"trial {number}: {progress.epochs} epochs" + ("" if progress.value is None else f", {progress.value:.6g}")
        for number, progress in sorted(running, key=lambda process: process[0])
    )


def shown_values(values: Mapping[str, str]) -> str:
    """Return values by the last parts of their paths, where these tell them apart; URLs without secrets."""
    last = [re.split("[/.]", path)[-1] for path in values]
    names = last if len({name.lower() for name in last}) == len(last) else list(values)
    return "  ".join(f"{name}={masked(text)}" for name, text in zip(names, values.values(), strict=True))


def _no_criterion(progress: Progress) -> str:
    wanted = progress.criterion
    if progress.others:
        return f"{wanted.command} reports no node '{wanted.node}'; it reports {', '.join(progress.others)}"
    return f"the run has reported no value of {wanted}"
