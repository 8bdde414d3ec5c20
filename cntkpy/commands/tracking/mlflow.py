"""Runs in MLflow, by its own client."""

from __future__ import annotations

import importlib
import re
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from cntkpy.cntk_config.base.names import public_name
from cntkpy.commands.runs.events import STOPPED
from cntkpy.commands.tracking.tracker import Place

BATCH = 100
"""Parameters, or metrics, of one request: what MLflow's servers take."""
MAX_NAME, MAX_VALUE, MAX_TAG = 250, 6000, 5000
"""Characters that MLflow takes."""
CONNECT_SECONDS = 5.0
"""Seconds to wait for a connection before the first request, because MLflow's own requests take minutes to fail."""
NOT_IN_NAMES = re.compile(r"[^\w\-. :/]")


class MlflowTracker:
    """Parameters, metrics, tags and artefacts of a run.

    Raises:
        ConnectionError: nobody answers at the address of the server.
    """

    def __init__(self, place: Place) -> None:
        self._package: Any = importlib.import_module("mlflow")
        self._client: Any = self._package.MlflowClient(tracking_uri=place.target or None)
        self._place = place
        self._run = ""
        if problem := self.problem():
            raise ConnectionError(problem)

    def problem(self) -> str:
        """Return why the server cannot be reached; empty: it can, or the store is no server, or behind a proxy."""
        return why_unreachable(str(self._client.tracking_uri))

    def started(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Create the run, in its experiment."""
        known = self._client.get_experiment_by_name(self._place.experiment)
        experiment = (
            known.experiment_id if known is not None else self._client.create_experiment(self._place.experiment)
        )
        texts = {_name(key): value[:MAX_TAG] for key, value in {**tags, **self._place.tags}.items()}
        run = self._client.create_run(experiment, tags=texts, run_name=self._place.name or None)
        self._run = run.info.run_id
        names = {_name(key): value[:MAX_VALUE] for key, value in parameters.items()}
        entity = self._package.entities.Param
        for some in _batches([entity(key, value) for key, value in names.items()]):
            self._client.log_batch(self._run, params=some)

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Send each value as a metric."""
        now = int(time.time() * 1000)
        entity = self._package.entities.Metric
        for some in _batches([entity(_name(name), value, now, step) for name, value in values.items()]):
            self._client.log_batch(self._run, metrics=some)

    def artifact(self, path: str) -> None:
        """Send the file as an artefact."""
        self._client.log_artifact(self._run, path)

    def finished(self, status: int, error: str) -> None:
        """End the run; the error is a tag."""
        if error:
            self._client.set_tag(self._run, "error", error[:MAX_TAG])
        ended = "FINISHED" if status == 0 else "KILLED" if status in STOPPED else "FAILED"
        self._client.set_terminated(self._run, ended)


def why_unreachable(url: str) -> str:
    """Return why nothing answers at the host and port of a URL of http or https; empty for other URLs."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # MLflow says what is wrong
        return ""
    if parts.scheme not in ("http", "https") or not host or (parts.scheme in getproxies() and not proxy_bypass(host)):
        return ""
    try:
        socket.create_connection((host, port or {"http": 80, "https": 443}[parts.scheme]), CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        return f"{public_name(url)} refused the connection: is the server running?"
    except TimeoutError:
        return f"{public_name(url)} does not answer"
    except OSError as error:
        return f"{public_name(url)} cannot be reached: {error.strerror or error}"
    return ""


def _name(text: str) -> str:
    """Return a name that MLflow takes: other characters become `_`."""
    return NOT_IN_NAMES.sub("_", text)[:MAX_NAME]


def _batches(every: list[Any]) -> Iterator[list[Any]]:
    return (every[begin : begin + BATCH] for begin in range(0, len(every), BATCH))
