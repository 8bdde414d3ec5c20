"""Names that Keras 2.3.1 expects of Python, NumPy and h5py, and that their versions of today have no more.

`install()` calls `support_keras` where the environment variable KERAS_BACKEND is `cntk`.
"""

# h5py and the values of its attributes have no types here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import collections
import collections.abc
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

ABSTRACT = ("Callable", "Iterable", "Mapping", "Sequence")
"""Names of `collections.abc` that `collections` had until Python 3.9."""


class Text(str):
    """An attribute of an HDF5 file: a text that has `decode`, as the bytes of h5py 2 had."""

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the text."""
        del encoding, errors
        return str(self)


def is_keras_on_cntk() -> bool:
    """Return whether programs of this process ask for Keras on CNTK."""
    return os.environ.get("KERAS_BACKEND") == "cntk"


def support_keras() -> None:
    """Give Python's, NumPy's and h5py's modules the names that Keras 2.3.1 uses; those that exist stay."""
    import numpy

    for name in ABSTRACT:
        _set_missing(collections, name, getattr(collections.abc, name))
    for name, value in (("Inf", numpy.inf), ("string_", numpy.bytes_), ("unicode_", numpy.str_)):
        _set_missing(numpy, name, value)
    if not any(isinstance(finder, _KerasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _KerasFinder())
    if importlib.util.find_spec("h5py") is not None:
        import h5py  # pyright: ignore

        _read_texts(h5py.AttributeManager)


def _read_texts(attributes: Any) -> None:
    """Let h5py's class of attributes give texts that have `decode`; it is outside software, and no class of cntkpy."""
    read = attributes.__getitem__
    if read.__module__ == __name__:
        return

    def read_text(self: Any, name: str) -> Any:
        return _with_texts(read(self, name))

    attributes.__getitem__ = read_text


def _with_texts(value: Any) -> Any:
    """Return an attribute whose texts have `decode`."""
    import numpy

    if isinstance(value, numpy.ndarray) and value.dtype == object:
        return numpy.array([_with_texts(item) for item in value.ravel()] + [None], object)[:-1].reshape(value.shape)
    return Text(value) if type(value) is str else value


class _KerasFinder(MetaPathFinder):
    """Finds Keras' modules of which a part is replaced; see `REPLACED`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of such a module; None for all others."""
        spec = PathFinder.find_spec(fullname, path) if fullname in REPLACED else None
        if spec is not None and spec.loader is not None:
            spec.loader = _KerasLoader(spec.loader, REPLACED[fullname])
        return spec


class _KerasLoader(Loader):
    """Loads a module of Keras, and replaces a part of it.

    Args:
        loader: The loader of the file.
        replace: Replaces the part.
    """

    def __init__(self, loader: Loader, replace: Callable[[Any], None]) -> None:
        self._loader, self._replace = loader, replace

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module of the file's loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the file, and replace the part."""
        self._loader.exec_module(module)
        self._replace(module)


def go_by_steps(wrappers: Any) -> None:
    """Let `TimeDistributed` apply its layer to one step after the other, where the number of steps is known.

    Keras makes minibatches of another size of all steps (`unpack_batch`, `to_batch`) where the size of a minibatch is
    not known; cntkpy has one size of a minibatch in a network. Where it is known, Keras goes by steps itself.

    Args:
        wrappers: Keras' module.
    """
    layer_class, backend = wrappers.TimeDistributed, wrappers.K
    by_reshaping = layer_class.call

    def call(self: Any, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        steps = backend.int_shape(inputs)[1]
        has_mask = mask is not None and wrappers.has_arg(self.layer.call, "mask")
        if not isinstance(steps, int) or steps < 1 or has_mask:
            return by_reshaping(self, inputs, training, mask)
        options = {"training": training} if wrappers.has_arg(self.layer.call, "training") else {}
        learning: list[Any] = []

        def step(x: Any, states: Any) -> tuple[Any, list[Any]]:
            output = self.layer.call(x, **options)
            learning.append(getattr(output, "_uses_learning_phase", False))
            return output, []

        self._input_map[wrappers.object_list_uid(inputs)] = inputs  # `compute_mask` looks it up
        values = backend.rnn(step, inputs, initial_states=[], input_length=steps, unroll=False)[1]
        regularizer = getattr(self.layer, "activity_regularizer", None)
        if regularizer is not None:
            self.add_loss(regularizer(values), inputs)
        if any(learning):
            values._uses_learning_phase = True
        return values

    layer_class.call = call


def give_gradients(backend: Any) -> None:
    """Let `K.gradients` with respect to what has a batch axis, inputs and outputs of layers, have values.

    Keras' backend returns a constant 0, which its optimizers replace for parameters. Here it is an input to which
    `K.function` gives the gradient of the loss before it computes the outputs.

    Args:
        backend: Keras' module of the backend.
    """
    import cntkpy.compat.cntk as cntk

    of_parameters, function_class = backend.gradients, backend.Function
    wanted: dict[Any, tuple[Any, Any]] = {}

    def gradients(loss: Any, variables: Any) -> list[Any]:
        listed = variables if isinstance(variables, list) else [variables]
        return [
            _gradient(loss, variable) if variable.dynamic_axes else of_parameters(loss, variable)[0]
            for variable in listed
        ]

    def _gradient(loss: Any, variable: Any) -> Any:
        """Return the input that stands for a gradient; a call of a function fills it."""
        if any(leaf in wanted for leaf in loss.arguments):
            raise NotImplementedError("K.gradients of K.gradients: there are no second derivatives on CNTK")
        gradient: Any = cntk.input_variable(variable.shape, dtype=variable.dtype, dynamic_axes=variable.dynamic_axes)
        gradient._keras_shape = backend.int_shape(variable)
        gradient._uses_learning_phase = False
        wanted[gradient] = loss, variable
        return gradient

    class Function(function_class):
        """Keras' function of a backend, with gradients among what its outputs depend on."""

        def __init__(self, inputs: Any, outputs: Any, updates: Any = (), **options: Any) -> None:
            leaves = dict.fromkeys(leaf for output in outputs for leaf in (output, *getattr(output, "arguments", ())))
            self.gradients = [leaf for leaf in leaves if leaf in wanted]
            assigned = [cntk.assign(*update) if isinstance(update, tuple) else update for update in updates]
            # Keras combines no functions then.
            of_data = bool(assigned) and all(update.arguments for update in assigned)
            super().__init__([*inputs, *self.gradients], outputs, [] if of_data else assigned, **options)
            if of_data:
                self.updates, self.unrelated_updates = assigned, cntk.combine([update.output for update in assigned])

        def __call__(self, inputs: Any) -> Any:
            data = dict(zip(self.placeholders, inputs, strict=False))
            return super().__call__([*inputs, *(_value(*wanted[gradient], data) for gradient in self.gradients)])

    def _value(loss: Any, variable: Any, data: dict[Any, Any]) -> Any:
        """Return the gradient of a loss for some data."""
        if variable not in loss.arguments:  # the output of a layer
            inside = cntk.input_variable(variable.shape, dtype=variable.dtype, dynamic_axes=variable.dynamic_axes)
            values = variable.eval({leaf: data[leaf] for leaf in variable.arguments})
            loss, variable, data = loss.clone("share", {variable: inside}), inside, {**data, inside: values}
        total = cntk.reduce_sum(loss) if loss.shape else loss
        return total.grad({leaf: data[leaf] for leaf in total.arguments}, wrt=[variable])

    backend.gradients, backend.Function = gradients, Function


def allow_unknown_sizes(backend: Any) -> None:
    """Let `K.repeat_elements`, `K.in_top_k` and `K.flatten` take sizes that only data say.

    What is repeated so often is left as it is, which operators take for all elements, as Keras' `K.repeat` does. The
    samples of a minibatch have targets one by one; Keras knows those of a minibatch without its axis only. All elements
    of a minibatch are one value, where Keras makes as many samples of them.

    Args:
        backend: Keras' module of the backend.
    """
    import cntkpy.compat.cntk as cntk

    of_known_size, of_all, reshaped = backend.repeat_elements, backend.in_top_k, backend.flatten

    def repeat_elements(x: Any, rep: Any, axis: int) -> Any:
        return x if rep in (None, cntk.InferredDimension, cntk.FreeDimension) else of_known_size(x, rep, axis)

    def in_top_k(predictions: Any, targets: Any, k: int) -> Any:
        if not predictions.dynamic_axes:
            return of_all(predictions, targets, k)
        labels = targets if targets.dynamic_axes else cntk.to_batch(targets)
        classes = cntk.reshape(cntk.one_hot(labels, predictions.shape[-1]), predictions.shape)
        return 1 - cntk.classification_error(predictions, classes, topN=k)

    def flatten(x: Any) -> Any:
        if len(getattr(x, "dynamic_axes", ())) != 1 or not x.shape:
            return reshaped(x)
        if set(x.shape) == {1}:
            return cntk.reshape(x, ())
        return cntk.reshape(cntk.unpack_batch(x), (-1,))

    backend.repeat_elements, backend.in_top_k, backend.flatten = repeat_elements, in_top_k, flatten


def _mend_backend(backend: Any) -> None:
    give_gradients(backend)
    allow_unknown_sizes(backend)


REPLACED = {"keras.layers.wrappers": go_by_steps, "keras.backend.cntk_backend": _mend_backend}
"""Keras' modules of which a part is replaced, and what replaces it."""


def _set_missing(module: Any, name: str, value: Any) -> None:
    if name not in vars(module):
        setattr(module, name, value)


__all__ = ["allow_unknown_sizes", "give_gradients", "go_by_steps", "is_keras_on_cntk", "support_keras"]
