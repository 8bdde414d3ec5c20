"""Small archives, script and label files for the tests of the HTK readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cntkpy.readers import Reader, create_reader
from cntkpy.readers.formats.htk.archive import write_archive

DIM, STATES = 3, ["sil", "a", "b", "c"]
LENGTHS = (5, 9, 4, 12, 7, 3, 8, 6)


class Speech:
    """Utterances u0, u1, ...; value 0 of a frame is its number over all, value 1 its utterance, value 2 its label."""

    def __init__(self, folder: Path, lengths: tuple[int, ...] = LENGTHS):
        self.folder, self.lengths = folder, lengths
        rng = np.random.default_rng(5)
        self.labels = [np.sort(rng.integers(0, len(STATES), n)) for n in lengths]
        self.frames, total = [], 0
        for u, n in enumerate(lengths):
            self.frames.append(np.stack([total + np.arange(n), np.full(n, u), self.labels[u]], 1).astype(np.float32))
            total += n
        named = [(f"g/u{u}.mfc", f) for u, f in enumerate(self.frames)]
        write_archive(str(folder / "f.ark"), named, str(folder / "f.scp"))
        self.write("states", "\n".join(STATES) + "\n")
        self.write("l.mlf", "#!MLF!#\n" + "".join(self.entry(u) for u in range(len(lengths))))

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def entry(self, u: int, unit: int = 100000) -> str:
        labels, lines, begin = self.labels[u], [f'"*/g/u{u}.lab"\n'], 0
        for t in range(1, len(labels) + 1):
            if t == len(labels) or labels[t] != labels[begin]:
                lines.append(f"{begin * unit} {t * unit} {STATES[labels[begin]]} -1.5\n")
                begin = t
        return "".join(lines) + ".\n"

    def features(self, **options: Any) -> str:
        return _section({"dim": DIM, "scpFile": f'"{self.folder}/f.scp"'} | options)

    def targets(self, **options: Any) -> str:
        return _section(
            {"mlfFile": f'"{self.folder}/l.mlf"', "labelMappingFile": f'"{self.folder}/states"', "labelDim": 4}
            | options
        )

    def old(
        self, features: dict[str, Any] | None = None, labels: dict[str, Any] | None = None, **options: Any
    ) -> Reader:
        """HTKMLFReader."""
        given = {"readerType": "HTKMLFReader", "useMersenneTwisterRand": "true"} | options
        text = f"x=[{self.features(**features or {})}];y=[{self.targets(**labels or {})}]"
        return create_reader(f"{_section(given)};{text}", "float")

    def composite(
        self,
        features: dict[str, Any] | None = None,
        labels: dict[str, Any] | None = None,
        more: str = "",
        **options: Any,
    ) -> Reader:
        """A composite reader."""
        text = f"[type=HTKFeatureDeserializer;input=[x=[{self.features(**features or {})}]]]{more}"
        text += f":[type=HTKMLFDeserializer;input=[y=[{self.targets(**labels or {})}]]]"
        return create_reader(f"{_section({'localTimeline': 'false'} | options)};deserializers=({text})", "float")


def _section(options: dict[str, Any]) -> str:
    return ";".join(f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in options.items())
