"""The formats that `cntkpy convert` knows: what files are called, what reads them, what writes them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Format(NamedTuple):
    """One format.

    Attributes:
        suffixes: of its files.
        source: `module:function` in this package, `f(paths, streams, precision) -> Input`.
        target: likewise, `f(path, streams, input)`, a context manager that gives a `Target`; None: it is only read.
        inputs: the files that are named, in order.
        beside: suffixes, in place of that of the output, of files that are written next to it.
        sequences: whether it holds where sequences begin.
        single: whether its values are of single precision.
        named_columns: whether it has columns with names, of which `labels` may name the one with the classes.
    """

    name: str
    suffixes: tuple[str, ...]
    source: str
    target: str | None
    inputs: str
    beside: tuple[str, ...] = ()
    sequences: bool = True
    single: bool = False
    named_columns: bool = False

    def read(self) -> Callable[..., Any]:
        """Return the function that reads."""
        return _load(self.source)

    def write(self) -> Callable[..., Any] | None:
        """Return the function that writes, if there is one."""
        return _load(self.target) if self.target else None


FORMATS = {
    file_format.name: file_format
    for file_format in (
        Format("ctf", (".ctf", ".txt"), "sources:from_ctf", "targets:to_ctf", "FILE"),
        Format("uci", (".uci", ".data"), "sources:from_uci", "targets:to_uci", "FILE", sequences=False),
        Format("binary", (".bin",), "binary:from_binary", "binary:to_binary", "FILE...", sequences=False),
        Format("cbf", (".cbf",), "cbf:from_cbf", "cbf:to_cbf", "FILE"),
        Format("npz", (".npz",), "archives:from_npz", "archives:to_npz", "FILE"),
        Format(
            "htk",
            (".scp", ".mfc", ".fea", ".fbank", ".plp", ".htk"),
            "htk:from_htk",
            "htk:to_htk",
            "SCRIPT or FEATURES [LABELS.mlf... [STATES]]",
            (".ark", ".mlf"),
            single=True,
        ),
        Format(
            "kaldi",
            (".ark",),
            "kaldi:from_kaldi",
            "kaldi:to_kaldi",
            "FEATURES [ALIGNMENTS], as ark:FILE, scp:FILE",
            (".counts", ".labels.ark"),
        ),
        Format(
            "parquet",
            (".parquet", ".pq"),
            "arrow_tables:from_parquet",
            "arrow_tables:to_parquet",
            "FILE",
            named_columns=True,
        ),
        Format(
            "arrow",
            (".arrow", ".feather"),
            "arrow_tables:from_arrow",
            "arrow_tables:to_arrow",
            "FILE",
            named_columns=True,
        ),
        Format("csv", (".csv", ".tsv", ".tab"), "tables:from_csv", None, "TABLE [CLASS NAMES]", named_columns=True),
        Format("lm", (), "corpora:from_lm", None, "CORPUS WORDS"),
        Format("lu", (), "corpora:from_lu", None, "CORPUS WORDS TAGS"),
    )
}


def format_of(path: str, name: str | None, option: str) -> Format:
    """Return the format that an option names, else that of a file's suffix."""
    if name is not None:
        return FORMATS[name]
    if option == "--from" and path.startswith(("ark:", "ark,", "scp:", "scp,")):
        return FORMATS["kaldi"]
    suffix = Path(path).suffix.lower()
    chosen = next((file_format for file_format in FORMATS.values() if suffix in file_format.suffixes), None)
    if chosen is None:
        from cntkpy.cntk_config.base.diagnostics import (
            ConfigError,  # late: the command line lists formats, and starts fast
        )

        raise ConfigError(
            "UnknownFormat",
            f"the format of {path} is not known",
            hint=f"name it: {option} {'|'.join(n for n, form in FORMATS.items() if form.target or option != '--to')}",
        )
    return chosen


def _load(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(f"cntkpy.readers.convert.{module}"), name)
