"""HTKMLFWriter: the values of a node as feature files, one per utterance, listed in a script file."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cntk_config.parameters import ConfigParameters
from readers.errors import DataError
from readers.utterances.lists import read_lines

from .archive import write_features
from .format import MOST_VALUES
from .script import key_of
from .writer_parameters import HTKWriterParameters, OutputParameters, node_sections

log = logging.getLogger("cntkpy.readers")
SCALED = "scaledloglikelihood"


class Output:
    """The files of one node."""

    def __init__(self, name: str, p: OutputParameters):
        self.name = str(p.node) if p.node is not None else name
        self.dim, self.scaled = p.dim, p.kind.lower() == SCALED
        self.prior: np.ndarray | None = None
        if not 0 < self.dim <= MOST_VALUES:
            raise p.error("dim", f"a frame of {self.dim} values cannot be written", f"write 1 to {MOST_VALUES}")
        if p.file is None:
            raise p.error("file", "the list of files to write is missing", "add scpFile=...", "MissingParameter")
        self.script = str(p.file)
        lines = [line for _, line in read_lines(self.script, "the list of files to write")]
        if p.path is not None:
            folder, ext = str(p.path), str(p.ext).lstrip(".")
            lines = [str(Path(folder) / f"{key_of(line.partition('=')[0]).lstrip('/')}.{ext}") for line in lines]
        self.paths = lines
        double = next((one for one, times in Counter(lines).items() if times > 1), None)
        if double is not None:
            raise p.error("file", f"{self.script} names the file {double} twice")

    def write(self, number: int, values: np.ndarray) -> None:
        """Write utterance `number`: values (frames, dim)."""
        if values.ndim != 2 or values.shape[1] != self.dim:
            raise DataError(
                f"The node '{self.name}' has {values.shape[-1]} values per frame, but its section in the writer says "
                f"dim={self.dim}.", hint="dim is the size of the node",
            )  # fmt: skip
        path = self.paths[number]
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
        counts = {len(output.paths) for output in outputs}
        if len(counts) > 1:
            lists = ", ".join(f"{output.script}: {len(output.paths)}" for output in outputs)
            raise DataError(f"The lists of files to write have different numbers of lines ({lists}).")

    @property
    def needs_priors(self) -> list[str]:
        """Nodes whose values are to be scaled by priors; see `set_prior`."""
        return [output.name for output in self.outputs if output.scaled]

    def set_prior(self, node: str, prior: np.ndarray) -> None:
        """How frequent the classes of a node are."""
        for output in self.outputs:
            if output.name == node:
                if prior.size != output.dim:
                    raise DataError(f"The prior has {prior.size} classes, the node '{node}' {output.dim} values.")
                output.prior = prior.reshape(-1).astype(np.float64)

    def sections(self) -> dict[str, str]:
        """The nodes that are written."""
        return {output.name: "HTK" for output in self.outputs}

    def save(self, data: Mapping[str, Any]) -> bool:
        """Write an utterance: by node, values (frames, dim). Returns whether there are more lines in the lists."""
        values = {name.lower(): np.asarray(array, np.float32) for name, array in data.items()}
        for output in self.outputs:
            if self._written >= len(output.paths):
                raise DataError(
                    f"{output.script} lists {len(output.paths)} files to write, but there are more utterances.",
                    path=output.script, hint="list one file for each utterance of the reader, in the same order",
                )  # fmt: skip
            if output.name.lower() not in values:
                raise DataError(f"There are no values of the node '{output.name}'.")
            output.write(self._written, values[output.name.lower()])
        self._written += 1
        return self._written < len(self.outputs[0].paths)

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
    outputs = {}
    for name, inside in node_sections(section):
        output = Output(name, OutputParameters(inside))
        outputs[output.name.lower()] = output
    wanted = [str(name) for name in p.nodes] or [output.name for output in outputs.values()]
    if not wanted:
        raise section.error(
            "outputNodeNames",
            "there is no node to write",
            "add outputNodeNames and a section for each",
            "MissingParameter",
        )
    missing = next((name for name in wanted if name.lower() not in outputs), None)
    if missing is not None:
        raise section.error(
            "", f"the writer has no section for the node '{missing}'", f"add {missing}=[dim=... ; scpFile=...]",
            "MissingParameter",
        )  # fmt: skip
    return HTKWriter([outputs[name.lower()] for name in wanted])
