"""Event files of TensorBoard, by the package tensorboardX: a tracker."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cntkpy.cntk_config import UserError
from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.cntk_config.base.writing import not_written
from cntkpy.networks.graph.network import Network

_UNUSUAL = re.compile(r"[^A-Za-z0-9./_-]")


class EventFile:
    """A new event file: the `Tracker` of runs and of programs that writes for TensorBoard.

    Args:
        folder: where; it is made if it is missing.
        tags: texts by name, kept with those of the run.
        keeps_up: after `scalars` everything is in the file; else after `flush`.

    Raises:
        UserError: the package is not installed, or the file cannot be written; also of the methods.
    """

    def __init__(
        self, folder: str | os.PathLike[str], tags: Mapping[str, str] | None = None, keeps_up: bool = False
    ) -> None:
        self._tags, self._keeps_up = tags or {}, keeps_up
        self._package = _package("tensorboardX")
        try:
            self._writer: Any = self._package.SummaryWriter(os.fspath(folder))
        except OSError as error:
            raise UserError("CannotWrite", not_written(error, folder)) from None
        self._folder = folder
        self._error: OSError | None = None
        self._keep_errors()
        self._is_open = True

    def started(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Add the configuration and the tags as tables in the tab of texts."""
        self.text("configuration", _table(parameters))
        self.text("run", _table({**tags, **self._tags}))

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Add numbers at a step; nothing, if the file is closed."""
        for name, value in values.items():
            self._check()
            if self._is_open:
                self._writer.add_scalar(name, value, step)
        if self._keeps_up:
            self.flush()

    def artifact(self, path: str) -> None:
        """Keep no files: TensorBoard has none."""

    def finished(self, status: int, error: str) -> None:
        """Close the file."""
        self.close()

    def text(self, tag: str, text: str) -> None:
        """Add a text in Markdown."""
        self._check()
        self._writer.add_text(tag, text)

    def images(self, name: str, pictures: Any, step: int) -> None:
        """Add pictures at a step; nothing, if the file is closed.

        Args:
            name: of the pictures.
            pictures: an array of bytes, (pictures, channels, height, width) with 1 or 3 channels.
            step: the place.
        """
        self._check()
        if self._is_open:
            for index, picture in enumerate(pictures):
                self._writer.add_image(f"{name}/{index}" if len(pictures) > 1 else name, picture, step)

    def graph(self, network: Network) -> None:
        """Add a network: its nodes with their operations, inputs and shapes; a point in a name makes a group of it."""
        message = _package("tensorboardX.proto.event_pb2").Event
        self._writer.file_writer.add_event(message(graph_def=graph_of(network).SerializeToString()))

    def flush(self) -> None:
        """Write everything to the file."""
        if self._is_open:
            self._writer.flush()
        self._check()

    def close(self) -> None:
        """Write everything and close the file; nothing is added after that."""
        if self._is_open:
            self._is_open = False
            self._writer.close()
            self._check()

    def _keep_errors(self) -> None:
        """Let the package's thread note errors of the disk, which would end it while `add_scalar` waits for it."""
        writer = getattr(self._writer.file_writer.event_writer, "_ev_writer", None)
        for name in ("write_event", "flush", "close"):
            if writer is not None and callable(method := getattr(writer, name, None)):
                setattr(writer, name, self._noting(method))

    def _noting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*arguments: object) -> Any:
            try:
                return method(*arguments)
            except OSError as error:
                self._error = self._error or error
                return False

        return noting

    def _check(self) -> None:
        """Raise the noted error.

        Raises:
            UserError: the file cannot be written.
        """
        if self._error is not None:
            raise UserError("CannotWrite", not_written(self._error, self._folder)) from None


def _table(texts: Mapping[str, str]) -> str:
    rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in texts.items()]
    return "\n".join(["| name | value |", "|---|---|", *rows])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        message = "event files of TensorBoard are written by the package tensorboardX, which is not installed"
        raise UserError("MissingPackage", message, hint=how_to_install("tensorboard")) from None


def graph_of(network: Network) -> Any:
    """Return a network as TensorFlow's message `GraphDef`."""
    graph: Any = _package("tensorboardX.proto.graph_pb2").GraphDef()
    graph.versions.producer = 1
    names = _unique(network.nodes)
    for node in network.nodes.values():
        inputs = [names[source.name] for source in node.inputs if source is not None]
        made = graph.node.add(name=names[node.name], op=node.operation, input=inputs)
        shape = made.attr["_output_shapes"].list.shape.add()
        for size in reversed(node.shape or ()):
            shape.dim.add(size=int(size))
    return graph


def _unique(names: Iterable[str]) -> dict[str, str]:
    """Return a name that TensorBoard takes for each of some names, no two alike."""
    result: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = _UNUSUAL.sub("_", name).replace(".", "/").lstrip("/_-") or "node"
        number, chosen = 0, plain
        while chosen in taken:
            number += 1
            chosen = f"{plain}_{number}"
        taken.add(chosen)
        result[name] = chosen
    return result
