"""The half of an exchange that does not depend on the toolkit: names, files, comparisons."""

# Variables and values are of any toolkit.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import logging
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten, suggestion
from cntkpy.cntk_config.base.files import open_input
from cntkpy.cntk_config.base.writing import output_file

from .forms import FORMS, PARAMETER, VALUE, FuncInfo, VarInfo

log = logging.getLogger("cntkpy.crosstalk")

SEQUENCES = "sequence"
"""Begins the names of the members of a file that has an array for each sequence."""


class Crosstalk:
    """Watches variables of one toolkit under names that the program of another one uses, too.

    A value is an array, a list of arrays (of sequences), or those of a layer (see `forms`). It is kept as
    NAME.PASS.npy, one of several arrays as NAME.PASS.npz; nothing is unpickled.
    """

    def __init__(self) -> None:
        self._funcs: dict[Any, FuncInfo] = {}
        self._workdir: Path | None = None
        self.reset()

    def reset(self) -> None:
        """Forget what is watched and compared; the types that are registered and the folder stay."""
        self.vars: dict[str, VarInfo] = {}
        self.compared: dict[str, bool] = {}
        self.passes = 0

    def next_pass(self) -> None:
        """Begin another pass: values have files of their own. Both programs say so at the same place."""
        self.passes += 1

    def set_workdir(self, dir: str | os.PathLike[str]) -> None:
        """Say in which folder the files are."""
        self._workdir = Path(dir)

    def register_funcs(
        self,
        var_type: Any,
        setter: Callable[[Any, Any, Any], None] | None = None,
        getter: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        """Say how variables of a type are written and read.

        Args:
            var_type: any object; see `watch`.
            setter: `setter(variable, value, attr)`.
            getter: `getter(variable, attr)`, which gives an array.
        """
        self._funcs[var_type] = FuncInfo(setter, getter)

    def type_of(self, var: Any) -> Any:
        """The type of a variable that was given none: `PARAMETER` or `VALUE`."""
        raise NotImplementedError

    def watch(self, var: Any, name: str, var_type: Any = None, attr: Any = None) -> None:
        """Watch a variable.

        Args:
            var: the variable.
            name: its name in both programs, which begins the names of files.
            var_type: a type of `register_funcs`; by default the class of `attr`, else whether it is a parameter.
            attr: what else is known of it, as `RnnAttr(hidden_dim=64)`.

        Raises:
            UserError: the name is taken or cannot be that of a file, or the type is not registered.
        """
        if not isinstance(name, str) or not name or name != Path(name).name or name.startswith("."):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise CallError("WrongArguments", f"crosstalk: {shorten(repr(name))} cannot be the name of a file")
        if name in self.vars:
            raise UserError("DuplicateName", f"crosstalk: '{name}' is watched already", hint="reset() forgets it")
        kind = var_type if var_type is not None else self.type_of(var) if attr is None else type(attr)
        if kind not in self._funcs:
            known = ", ".join(getattr(function, "__name__", str(function)) for function in self._funcs)
            message = f"crosstalk: '{name}' has a type that is not registered: {shorten(repr(kind))}"
            raise CallError("WrongArguments", message, hint=f"there are {known}; register_funcs adds others")
        self.vars[name] = VarInfo(var, kind, attr)

    def is_param(self, name: str) -> bool:
        """Return whether a name is that of a parameter, or of a layer with parameters."""
        return self._info(name).type != VALUE

    def fetch(self, name: str, save: bool = False) -> Any:
        """The value of what is watched.

        Args:
            name: its name.
            save: write it into its file, too.
        """
        var, kind, attr = self._info(name)
        getter = self._funcs[kind].getter
        if getter is None:
            raise UserError("NotSupported", f"crosstalk: '{name}' cannot be read: its type has no getter")
        value = getter(var, attr)
        if save:
            self._write(name, value)
        return value

    def assign(self, name: str, value: Any = None, load: bool = False, load_name: str | None = None) -> None:
        """Give a value to what is watched.

        Args:
            name: its name.
            value: the value.
            load: take the value of the file instead.
            load_name: the name of that file, if it is another.

        Raises:
            UserError: it is not a parameter, there is no value, or it does not fit.
        """
        var, kind, attr = self._info(name)
        if load:
            value = self.load_raw_value(load_name or name)
        if value is None:
            raise CallError("WrongArguments", f"crosstalk: no value for '{name}'", hint="value=array, or load=True")
        setter = self._funcs[kind].setter
        if setter is None:
            message = f"crosstalk: '{name}' is computed, so no value can be assigned to it"
            raise UserError("NotSupported", message, hint="watch the parameters that it is computed from")
        setter(var, value, attr)

    def compare(
        self,
        name: str,
        compare_name: str | None = None,
        rtol: float = 1e-05,
        atol: float = 1e-08,
        equal_nan: bool = False,
    ) -> bool:
        """Compare a value with that of a file by `numpy.allclose`; warn of the largest difference.

        Args:
            name: what is watched.
            compare_name: the name of the file, if it is another.
            rtol: the relative difference that is allowed.
            atol: the absolute one.
            equal_nan: whether what is no number in both is equal.
        """
        stored, loaded = _arrays(self.fetch(name)), _arrays(self.load_raw_value(compare_name or name))
        why = ""
        if stored.keys() != loaded.keys() or any(stored[key].shape != loaded[key].shape for key in stored):
            shapes = [{key: array.shape for key, array in side.items()} for side in (stored, loaded)]
            why = f"shapes are {shapes[0]} here, {shapes[1]} there"
        for key in () if why else stored:
            if stored[key].dtype.kind not in "fiub":
                why = why or ("" if np.array_equal(stored[key], loaded[key]) else f"{key} differ")
            elif not np.allclose(stored[key], loaded[key], rtol, atol, equal_nan):
                why = why or f"differences are up to {np.max(np.abs(stored[key] - loaded[key]), initial=0):.6g}"
        if why:
            log.warning("WARNING: crosstalk: '%s' is not the same in pass %d: %s", name, self.passes, why)
        self.compared[f"{name}.{self.passes}"] = not why
        return not why

    @property
    def passed(self) -> bool:
        """Return whether everything that was compared since `reset` was the same."""
        return all(self.compared.values())

    def save(self, names: Iterable[str]) -> None:
        """Write the values of what has these names."""
        for name in [names] if isinstance(names, str) else names:
            self.fetch(name, save=True)

    def load(self, names: Iterable[str]) -> None:
        """Assign what the files of these names have."""
        for name in [names] if isinstance(names, str) else names:
            self.assign(name, load=True)

    def save_all(self) -> None:
        """Write the values of all that is watched."""
        self.save(self.vars)

    def save_all_params(self) -> None:
        """Write the values of all parameters that are watched."""
        self.save(filter(self.is_param, self.vars))

    def load_all_params(self) -> None:
        """Assign to all parameters that are watched what their files have."""
        self.load(filter(self.is_param, self.vars))

    def load_raw_value(self, name: str) -> Any:
        """The value that the file of a name has in this pass.

        Raises:
            UserError: there is no such file, or it is damaged.
        """
        for ending in (".npy", ".npz"):
            path = self._file(name, ending)
            try:
                with open_input(path) as file:
                    stored = np.load(file, allow_pickle=False)
                    return stored if ending == ".npy" else _value({key: stored[key] for key in stored.files})
            except FileNotFoundError:
                continue
            except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
                message = f"{path} is not a file of crosstalk: {error}"
                raise UserError("CannotRead", message, hint="let the other program save the value again") from None
        message = f"crosstalk: there is no value of '{name}' in pass {self.passes} in the folder {self._workdir}"
        raise UserError("CannotRead", message, hint=f"the other program saves it: fetch('{name}', save=True)")

    def _write(self, name: str, value: Any) -> None:
        arrays = _arrays(value)
        single = list(arrays) == [""]
        with output_file(self._file(name, ".npy" if single else ".npz")) as file:
            if single:
                np.save(file, arrays[""], allow_pickle=False)
            else:
                np.savez(file, **arrays)

    def _file(self, name: str, ending: str) -> Path:
        if self._workdir is None:
            raise UserError("MissingParameter", "crosstalk has no folder yet", hint="set_workdir('exchange')")
        return self._workdir / f"{name}.{self.passes}{ending}"

    def _info(self, name: str) -> VarInfo:
        if name not in self.vars:
            raise UserError(
                "UnknownName", f"crosstalk: nothing called '{name}' is watched", hint=suggestion(name, self.vars)
            )
        return self.vars[name]


def _arrays(value: Any) -> dict[str, Any]:
    """The arrays of a value by name; a single one has the name ""."""
    if isinstance(value, FORMS):
        fields: dict[str, Any] = value._asdict()
        return {name: np.asarray(array) for name, array in fields.items()}
    if isinstance(value, list):
        return {f"{SEQUENCES}{number}": np.asarray(array) for number, array in enumerate(value)}
    return {"": np.asarray(value)}


def _value(arrays: dict[str, Any]) -> Any:
    """The value of several arrays.

    Raises:
        ValueError: they are none of crosstalk.
    """
    for form in FORMS:
        if set(form._fields) == set(arrays):
            return form(**arrays)
    names = [f"{SEQUENCES}{number}" for number in range(len(arrays))]
    if set(names) != set(arrays):
        raise ValueError(f"it has the arrays {sorted(arrays)}")
    return [arrays[name] for name in names]


__all__ = ["PARAMETER", "VALUE", "Crosstalk"]
