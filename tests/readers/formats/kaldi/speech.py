"""The same small corpus as HTK and MLF files and as Kaldi archives, for the tests of readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cntkpy.readers import Reader, create_reader
from cntkpy.readers.formats.htk.archive import write_archive
from cntkpy.readers.formats.kaldi.specifier import parse_write_specifier
from cntkpy.readers.formats.kaldi.write import open_writer

DIM, CLASSES = 3, 4
LENGTHS = (5, 9, 4, 12, 7, 3, 8, 6)


class Corpus:
    """Utterances u0, u1, ... of random frames and classes, in every form, in a folder."""

    def __init__(self, folder: Path, lengths: tuple[int, ...] = LENGTHS, *, seed: int = 5):
        self.folder, self.lengths = folder, lengths
        rng = np.random.default_rng(seed)
        self.keys = [f"sp0.9-u{u}" for u in range(len(lengths))]
        self.frames = [rng.standard_normal((n, DIM)).astype(np.float32) for n in lengths]
        self.classes = [np.sort(rng.integers(0, CLASSES, n)) for n in lengths]
        named = [(f"{key}.mfc", frames) for key, frames in zip(self.keys, self.frames, strict=True)]
        write_archive(f"{folder}/htk.ark", named, f"{folder}/htk.scp")
        self.write("labels.mlf", "#!MLF!#\n" + "".join(map(self._entry, range(len(lengths)))))
        self.write("states", "".join(f"{c}\n" for c in range(CLASSES)))
        with open_writer(parse_write_specifier(f"ark,scp:{folder}/feats.ark,{folder}/feats.scp")) as writer:
            for key, frames in zip(self.keys, self.frames, strict=True):
                writer.write_matrix(key, frames)
        with open_writer(parse_write_specifier(f"ark:{folder}/ali.ark")) as writer:
            for key, classes in zip(self.keys, self.classes, strict=True):
                writer.write_integers(key, classes)
        self.write("counts", "".join(f"{key} {n}\n" for key, n in zip(self.keys, lengths, strict=True)))
        self.write("rx", f"scp:{folder}/feats.scp\n")
        self.write("lab", f"  ark:{folder}/ali.ark\n\n")

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return f"{self.folder}/{name}"

    def _entry(self, u: int) -> str:
        classes, lines, begin = self.classes[u], [f'"*/{self.keys[u]}.lab"\n'], 0
        for t in range(1, len(classes) + 1):
            if t == len(classes) or classes[t] != classes[begin]:
                lines.append(f"{begin * 100000} {t * 100000} {classes[begin]} -1.5\n")
                begin = t
        return "".join(lines) + ".\n"

    def htk(self, features: dict[str, Any] | None = None, **options: Any) -> Reader:
        """HTKMLFReader."""
        x = section({"dim": DIM, "scpFile": f'"{self.folder}/htk.scp"'} | (features or {}))
        y = section(
            {
                "mlfFile": f'"{self.folder}/labels.mlf"',
                "labelMappingFile": f'"{self.folder}/states"',
                "labelDim": CLASSES,
            }
        )
        return create_reader(f"readerType=HTKMLFReader;{section(options)};x=[{x}];y=[{y}]", "float")

    def kaldi(
        self,
        features: dict[str, Any] | None = None,
        labels: dict[str, Any] | None = None,
        more: str = "",
        precision: str = "float",
        **options: Any,
    ) -> Reader:
        """Kaldi2Reader."""
        return create_reader(self.kaldi_section(features, labels, more, **options), precision)

    def kaldi_section(
        self,
        features: dict[str, Any] | None = None,
        labels: dict[str, Any] | None = None,
        more: str = "",
        **options: Any,
    ) -> str:
        """The section of Kaldi2Reader."""
        given = {"dim": DIM, "scpFile": f'"{self.folder}/counts"', "rx": f'"{self.folder}/rx"'}
        x = section(given | {"featureTransform": "NO_FEATURE_TRANSFORM"} | (features or {}))
        y = section(
            {"mlfFile": f'"{self.folder}/lab"', "labelMappingFile": f'"{self.folder}/states"', "labelDim": CLASSES}
            | (labels or {})
        )
        return f"readerType=Kaldi2Reader;{section(options)};x=[{x}];y=[{y}]{more}"

    def composite(self, kind: str, features: str = "", **options: Any) -> Reader:
        """A composite reader of `HTK` or `Kaldi` deserializers."""
        f = self.folder
        if kind == "HTK":
            x, y = f'scpFile="{f}/htk.scp"', f'mlfFile="{f}/labels.mlf";labelMappingFile="{f}/states"'
        else:
            x, y = f'rx="scp:{f}/feats.scp"', f'mlfFile="ark:{f}/ali.ark"'
        names = {"HTK": ("HTKFeature", "HTKMLF"), "Kaldi": ("KaldiFeature", "KaldiLabel")}[kind]
        text = f"[type={names[0]}Deserializer;input=[x=[dim={DIM};{x}{features}]]]"
        text += f":[type={names[1]}Deserializer;input=[y=[labelDim={CLASSES};{y}]]]"
        return create_reader(f"{section(options)};deserializers=({text})", "float")


def section(options: dict[str, Any]) -> str:
    return ";".join(f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in options.items())


def minibatches(reader: Reader, size: int, epochs: int = 2, samples: int | None = None) -> list[dict[str, Any]]:
    """Everything that a reader gives: values, layouts, keys, ends."""
    found = []
    for epoch in range(epochs):
        reader.start_minibatch_loop(size, epoch, samples)
        while (m := reader.get_minibatch()) is not None:
            one: dict[str, Any] = {"end": m.end_of_sweep, "keys": list(m.keys)}
            for name in sorted(m.streams):
                data, layout = m.streams[name], m.layouts[name]
                dense = data if isinstance(data, np.ndarray) else data.toarray()
                one[name] = (dense.dtype.str, dense.shape, dense.tobytes())
                one[f"{name} layout"] = (layout.T, layout.S, layout.sequences.tolist())
            found.append(one)
    reader.close()
    return found
