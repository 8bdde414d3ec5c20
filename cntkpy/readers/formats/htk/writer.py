"""HTKMLFWriter: the values of a node as feature files, one per utterance, listed in a script file."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.errors import DataError
from cntkpy.readers.utterances.lists import read_lines
from cntkpy.readers.utterances.targets import Targets, check_size, wanted_nodes

from .archive import write_features
from .format import MOST_VALUES
from .script import key_of
from .writer_parameters import HTKWriterParameters, OutputParameters, node_name, node_sections

log = logging.getLogger("cntkpy.readers")
SCALED = "scaledloglikelihood"


class Output:
    """The files of one node: those of a list, or one called as each utterance."""

    def __init__(self, name: str, p: OutputParameters):
        self.name = node_name(name, p.config)
        self._parameters = p
        self.dim, self.scaled = p.dim, p.kind.lower() == SCALED
        self.prior: np.ndarray | None = None
        if not 0 < self.dim <= MOST_VALUES:
            raise p.error("dim", f"a frame of {self.dim} values cannot be written", f"write 1 to {MOST_VALUES}")
        self._folder, self._ext = p.path, str(p.ext).lstrip(".")
        if p.file is None and p.path is None:
            raise p.error(
                "file",
                "the list of files to write is missing",
                "add scpFile=..., or path=... for files called as the utterances",
                "MissingParameter",
            )
        self.script = str(p.file or "")
        self.paths = self._listed(p) if p.file is not None else None

    def _listed(self, p: OutputParameters) -> list[str]:
        lines = [line for _, line in read_lines(self.script, "the list of files to write")]
        if self._folder is not None:
            lines = [self._named(line.partition("=")[0]) for line in lines]
        double = next((key for key, times in Counter(lines).items() if times > 1), None)
        if double is not None:
            raise p.error("file", f"{self.script} names the file {double} twice")
        return lines

    def _named(self, utterance: str) -> str:
        return str(Path(str(self._folder)) / f"{key_of(utterance).lstrip('/')}.{self._ext}")

    def path(self, number: int, key: int | str | None) -> str:
        """Return the file of utterance `number`, which the reader calls `key`."""
        if self.paths is None:
            if key is None:
                raise DataError(
                    f"The files of the node '{self.name}' are called as utterances, which have no names here.",
                    hint="add scpFile=..., a list of the files",
                )
            return self._named(str(key))
        if number >= len(self.paths):
            raise DataError(
                f"{self.script} lists {len(self.paths)} files to write, but there are more utterances.",
                path=self.script,
                hint="list one file for each utterance of the reader, in the same order",
            )
        return self.paths[number]

    def write(self, path: str, values: np.ndarray, targets: Targets) -> None:
        """Write the file of an utterance: values (frames, dim)."""
        check_size(values, self.dim, self.name, self._parameters)
        targets.take(path, self.name, self._parameters, "file" if self._folder is None else "path")
        if self.prior is not None:
            with np.errstate(divide="ignore"):
                values = values - np.log(self.prior)
        bad = int(values.size - np.count_nonzero(np.isfinite(values)))
        if bad:
            log.warning("%d of the values for %s are NaN or infinite.", bad, path)
        log.info("evaluate: writing %d frames of %s", len(values), path)
        write_features(path, values)


class HTKWriter:
    """Writes utterance after utterance; call n of `save` writes line n of every list."""

    def __init__(self, outputs: list[Output]):
        self.outputs = sorted(outputs, key=lambda output: output.name)
        self._written = 0
        self._key: int | str | None = None
        self._targets = Targets()
        counts = {output.script: len(output.paths) for output in outputs if output.paths is not None}
        if len(set(counts.values())) > 1:
            lists = ", ".join(f"{script}: {count}" for script, count in counts.items())
            raise DataError(f"The lists of files to write have different numbers of lines ({lists}).")
        self._listed = min(counts.values(), default=None)

    @property
    def takes_keys(self) -> bool:
        """True if files are called as the utterances."""
        return any(output.paths is None for output in self.outputs)

    def set_key(self, key: int | str) -> None:
        """Set the reader's key of the utterance that is written next."""
        self._key = key

    def spare(self, paths: Iterable[str]) -> None:
        """These files are read; none of them is written over."""
        self._targets.spare(paths)

    @property
    def needs_priors(self) -> list[str]:
        """Nodes whose values are to be scaled by priors; see `set_prior`."""
        return [output.name for output in self.outputs if output.scaled]

    def set_prior(self, node: str, prior: np.ndarray) -> None:
        """Set the prior probabilities of the classes of a node."""
        for output in self.outputs:
            if output.name == node and output.scaled:
                if prior.size != output.dim:
                    raise DataError(f"The prior has {prior.size} classes, the node '{node}' {output.dim} values.")
                output.prior = prior.reshape(-1).astype(np.float64)

    def sections(self) -> dict[str, str]:
        """Return the nodes that are written."""
        return {output.name: "HTK" for output in self.outputs}

    def save(self, data: Mapping[str, Any]) -> bool:
        """Write an utterance: by node, values (frames, dim). Returns whether there are more lines in the lists."""
        values = {name.lower(): np.asarray(array, np.float32) for name, array in data.items()}
        for output in self.outputs:
            path = output.path(self._written, self._key)
            if output.name.lower() not in values:
                raise DataError(f"There are no values of the node '{output.name}'.")
            output.write(path, values[output.name.lower()], self._targets)
        self._written += 1
        return self._listed is None or self._written < self._listed

    def save_mapping(self, section: str, labels: Mapping[int, str]) -> None:
        """Feature files hold no names of classes."""
        raise DataError("Names of classes cannot be written to feature files.")

    def close(self) -> None:
        """Nothing is left to do; files are finished one by one."""

    def abandon(self) -> None:
        """Files that were written stay."""


def create_htk_writer(section: ConfigParameters, precision: str) -> HTKWriter:
    """HTKMLFWriter."""
    p = HTKWriterParameters(section)
    outputs = [Output(name, OutputParameters(inside)) for name, inside in node_sections(section)]
    wanted = wanted_nodes(section, list(p.nodes), [output.name for output in outputs])
    names = {name.lower() for name in wanted}
    return HTKWriter([output for output in outputs if output.name.lower() in names])
