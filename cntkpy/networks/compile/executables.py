"""Compiled programs that are kept whole, so that a later run neither traces nor lowers nor compiles them.

A `Program` is used like a function that `jax.jit` returns. Where everything that decides how it is compiled is known,
its machine code is kept in a folder of caches. The key is a digest of the network and what else the caller names, the
shapes and types of the arguments, the sources of this package, the versions of JAX, its settings, and the processor.
What cannot be described is not kept, and compiled as always.

A program of several processes is kept by each of them: JAX itself keeps only those of the first. A function of the
process that it calls (`jax.ffi`) it has by name, and XLA looks for it when the program is read back: where nothing is
registered by that name, the program cannot be used.

JAX reads machine code back with pickle. So a file is read only from a folder that nobody else may write to (see
`cntkpy.cntk_config.base.cache_folders`), and only if its digest is that of its contents.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import logging
import os
import platform
import threading
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast

import numpy as np

from cntkpy.cntk_config.base.cache_folders import is_private
from cntkpy.cntk_config.base.systems import cores, memory
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.networks.arrays.lazy import cache_folder, default_device, jax
from cntkpy.networks.compile.cuda_graphs import compile_lowered
from cntkpy.networks.graph.network import Network, Node

if TYPE_CHECKING:
    from jax import Array

    from cntkpy.networks.arrays.lazy import Device
    from cntkpy.networks.compile.cuda_graphs import Compiled, Lowered

    class Jitted(Protocol):
        """Result of `jax.jit`."""

        def __call__(self, *arguments: object) -> Sequence[Array]: ...
        def lower(self, *arguments: object) -> Lowered: ...

    class PyTreeDef(Protocol):
        """The form of a tree; JAX's own class has no annotations."""

        @property
        def num_leaves(self) -> int: ...
        def unflatten(self, leaves: Sequence[object], /) -> Any: ...


log = logging.getLogger("cntkpy.networks")

__all__ = ["Program", "Unknown", "digest"]

CACHE_BYTES = 256 << 20
"""Bytes of all kept programs; the ones that were not used for longest go first."""

MAGIC = b"cntkpy program 1\n"

FOLDER, SUFFIX = "programs", ".program"

KEPT, JITTED = "kept_program", "program"
"""Names of programs; JAX's own cache, where the names count, must never have one of the first."""

SLOW_COMPILE_SECONDS = 5.0
"""Compiling is logged if it takes longer."""

NEVER_SECONDS = 1e9
"""JAX's own cache keeps only programs that took longer to compile."""


_setting_lock = threading.Lock()
"""Held while JAX's settings are changed: they are those of the whole process."""


class Unknown(Exception):
    """Something cannot be described, so that it is not known when a program may be used again."""


class Program:
    """A function of arrays, compiled once per shape of its arguments.

    Args:
        function: takes positional arguments and returns dicts, lists and tuples of arrays.
        identity: everything that `function` depends on besides its arguments.
        donate: number of first arguments whose buffers hold results.
        static: number of last arguments that are no arrays, but hashable values that the program is compiled for.
        devices: all on which its arrays lie, those of other processes included; none: the first of this process.
        describe: says of arguments, in a few words, what is computed with them.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        identity: object,
        donate: int = 0,
        static: int = 0,
        devices: Sequence[Device] = (),
        describe: Callable[..., str] = lambda *arguments: "",
    ) -> None:
        self._function, self._identity, self._donate, self._static = function, identity, donate, static
        self._devices, self._describe = tuple(devices), describe
        self._compiled: dict[Any, Callable[..., Any]] = {}
        self._digest = ""

    @property
    def shapes(self) -> int:
        """Number of argument shapes so far."""
        return len(self._compiled)

    def __call__(self, *arguments: object) -> Any:
        """Return the results for these arguments."""
        leaves, program = self.prepared(*arguments)
        return program(leaves)

    def prepared(self, *arguments: object) -> tuple[list[object], Callable[[Sequence[object]], Any]]:
        """Return the leaves of arguments, and what gives the results for leaves of these types and shapes."""
        leaves, tree, static = self._flat(arguments)
        return leaves, self._found(arguments, leaves, tree, static)

    def find(self, *arguments: object) -> None:
        """Compile for arguments of these shapes before the arguments themselves take memory."""
        self._found(arguments, *self._flat(arguments))

    def _found(
        self, arguments: tuple[object, ...], leaves: Sequence[object], tree: PyTreeDef, static: tuple[object, ...]
    ) -> Callable[[Sequence[object]], Any]:
        """Return the program for these arguments, which are `leaves`, `tree` and `static`."""
        key = (tree, static, tuple(_kind(leaf) for leaf in leaves))
        compiled = self._compiled.get(key)
        if compiled is None:
            path, reason = self._path(leaves, tree, static), self._reason(arguments)
            compiled = self._find(path, reason, self._donated(arguments), leaves, tree, static)
            self._compiled[key] = compiled
            memory.release_freed()
        return compiled

    def lower(self, *arguments: object) -> Lowered:
        """As the method of `jax.jit`."""
        leaves, tree, static = self._flat(arguments)
        return self._jit(self._donated(arguments), tree, static, KEPT)[0].lower(*leaves)

    def _flat(self, arguments: tuple[object, ...]) -> tuple[list[object], PyTreeDef, tuple[object, ...]]:
        count = len(arguments) - self._static
        leaves, tree = jax.tree.flatten(arguments[:count])
        return leaves, tree, arguments[count:]

    def _donated(self, arguments: tuple[object, ...]) -> int:
        """Return the number of arrays are taken over."""
        return len(jax.tree.leaves(arguments[: self._donate]))

    def _reason(self, arguments: tuple[object, ...]) -> str:
        """Why a program is compiled, for the log."""
        text = f"for a new shape of minibatches ({len(self._compiled) + 1} so far)"
        return ": ".join(filter(None, (text, self._describe(*arguments))))

    def _jit(
        self, donated: int, tree: PyTreeDef, static: tuple[object, ...], name: str
    ) -> tuple[Jitted, list[PyTreeDef]]:
        """Return the jitted function of flat arguments and results, and a list that gets the tree of its results."""
        trees: list[Any] = []

        def program(*leaves: object) -> tuple[Array, ...]:
            results, result = jax.tree.flatten(self._function(*jax.tree.unflatten(tree, leaves), *static))
            trees[:] = [result]
            return tuple(results)

        program.__name__ = name
        return jax.jit(program, donate_argnums=tuple(range(donated))), trees

    def _find(
        self,
        path: Path | None,
        reason: str,
        donated: int,
        leaves: Sequence[object],
        tree: PyTreeDef,
        static: tuple[object, ...],
    ) -> Callable[[Sequence[object]], Any]:
        """Return the program for these shapes: read from the cache, or compiled and kept."""
        if path is None:
            compiled, trees = self._jit(donated, tree, static, JITTED)
            return lambda leaves: _in_form(compiled(*leaves), trees[0])
        executable = _read(path, len(leaves), self._devices or (default_device(),))
        if executable is None:
            executable = self._made(reason, donated, leaves, tree, static)
            _write(path, *executable)
        program, result = executable
        return lambda leaves: _in_form(program(*leaves), result)

    def _made(
        self, reason: str, donated: int, leaves: Sequence[object], tree: PyTreeDef, static: tuple[object, ...]
    ) -> tuple[Compiled, PyTreeDef]:
        """Return a compiled program and the tree of its results."""
        jitted, trees = self._jit(donated, tree, static, KEPT)
        with _logged_if_slow(reason), _not_kept_by_jax():
            lowered = jitted.lower(*leaves)
            memory.release_freed()  # by readers and by lowering; compiling takes 50 to 100 MB besides
            compiled = compile_lowered(lowered, self._devices or (default_device(),))
        return compiled, trees[0]

    def _path(self, leaves: Sequence[object], tree: PyTreeDef, static: tuple[object, ...]) -> Path | None:
        """Return the path of the program in the cache; None if it is not kept."""
        folder = cache_folder()
        if folder is None:
            return None
        try:
            if not self._digest:
                function = (self._function.__module__, self._function.__qualname__)
                self._digest = digest((function, self._identity, self._donate))
            devices = self._devices or (default_device(),)
            shapes = [_described(leaf, devices) for leaf in leaves]
            places = [(device.id, device.process_index) for device in devices]
            name = digest((self._digest, str(tree), static, shapes, places, _surroundings(default_device())))
        except Unknown as reason:
            log.debug("A program is not kept: %s", reason)
            return None
        return folder / FOLDER / (name + SUFFIX)


def _in_form(results: Sequence[Array], tree: PyTreeDef) -> Any:
    return tree.unflatten(results)


def _kind(leaf: Any) -> Hashable:
    """Return the key of an argument that selects the program inside a process."""
    if _of_numpy(leaf):
        return leaf.shape, leaf.dtype
    if isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)):
        # Not the type that JAX gives it: what a program gives that was read back has another since JAX 0.12.
        return leaf.shape, leaf.dtype, leaf.weak_type
    return leaf.__class__


def _of_numpy(leaf: object) -> TypeGuard[np.ndarray | np.generic]:
    return isinstance(leaf, (np.ndarray, np.generic))


def _described(leaf: Any, devices: Sequence[Device]) -> tuple[object, ...]:
    """Return the same for all runs; of several devices with what lies on each.

    Raises:
        Unknown: it does not lie on these devices.
    """
    if _of_numpy(leaf):
        return leaf.shape, leaf.dtype.str
    if isinstance(leaf, (bool, int, float)):
        return ("python", type(leaf).__name__)
    if isinstance(leaf, jax.ShapeDtypeStruct) and len(devices) == 1:
        return leaf.shape, str(leaf.dtype), leaf.weak_type
    if not isinstance(leaf, jax.Array) or leaf.sharding.device_set != set(devices):
        raise Unknown(f"an argument is not an array on the program's devices: {type(leaf).__name__}")
    if len(devices) == 1:
        return leaf.shape, str(leaf.dtype), leaf.weak_type
    places: dict[Any, Any] = leaf.sharding.devices_indices_map(leaf.shape)
    return leaf.shape, str(leaf.dtype), leaf.weak_type, [str(places[device]) for device in devices]


# ---- what decides how a program is compiled


def digest(*values: object) -> str:
    """Return a digest of data: numbers, texts, arrays, containers, data classes, functions, networks.

    Functions count with their code and what they close over. Of networks counts what their programs depend on, not the
    values of parameters, which are arguments.

    Raises:
        Unknown: something else is among them.
    """
    result = hashlib.sha256()
    seen: dict[int, int] = {}
    kept: list[Any] = []  # so that no identity is used twice

    def feed(value: object) -> None:
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            result.update(f"{type(value).__name__}:{value!r};".encode())
            return
        if id(value) in seen:
            result.update(f"seen:{seen[id(value)]};".encode())
            return
        seen[id(value)] = len(seen)
        kept.append(value)
        parts = _parts(value)
        result.update(f"{type(value).__qualname__}:{len(parts)}(".encode())
        for part in parts:
            feed(part)
        result.update(b")")

    feed(values)
    return result.hexdigest()


def _parts(value: object) -> Sequence[object]:
    """Return the parts of an object."""
    for types, parts in _PARTS:
        if isinstance(value, types):
            return parts(value)
    if is_dataclass(value) and not isinstance(value, type):
        return [part for field in fields(value) for part in (field.name, getattr(value, field.name))]
    raise Unknown(f"{type(value).__module__}.{type(value).__qualname__} cannot be described")


def _of_function(function: FunctionType) -> Sequence[object]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    extra = (function.__module__, function.__qualname__, function.__defaults__, function.__kwdefaults__)
    return [*extra, function.__code__, *cells]


def _of_code(code: CodeType) -> Sequence[object]:
    return [code.co_code, code.co_names, code.co_varnames, code.co_freevars, *code.co_consts]


def _of_network(network: Network) -> Sequence[object]:
    changing = sorted(network.changing)
    return [
        network.precision,
        changing,
        *network.nodes.values(),
        {name: list(nodes) for name, nodes in network.groups.items()},
    ]


def _of_node(node: Node) -> Sequence[object]:
    value = node.value
    inlined = value is not None and (value.size == 1 if node.is_parameter else not node.kind.precompute)
    return [
        node.name,
        node.kind.name,
        node.inputs,
        node.options,
        node.shape,
        node.has_layout,
        node.computed,
        node.learning_rate_multiplier,
        value is None and not node.trainable,
        value if inlined and not node.trainable else None,
    ]


_PARTS: list[tuple[Any, Callable[[Any], Sequence[Any]]]] = [
    (Network, _of_network),
    (Node, _of_node),
    (np.dtype, lambda dtype: [dtype.str]),
    (np.ndarray, lambda array: [array.dtype, array.shape, array.tobytes()]),
    (np.generic, lambda number: [number.dtype, number.tobytes()]),
    (Mapping, lambda mapping: [part for pair in mapping.items() for part in pair]),
    ((list, tuple), list),
    ((set, frozenset), sorted),
    (FunctionType, _of_function),
    (CodeType, _of_code),
    (functools.partial, lambda leaf: [leaf.func, leaf.args, leaf.keywords]),
]


@functools.cache
def _surroundings(device: Device) -> str:
    """Return a digest of versions, sources, settings, the machine and the default device."""
    root = Path(__file__).resolve().parents[2]
    sources: list[tuple[str, int, int]] = []
    for folder in ("networks", "trainers"):
        for path in sorted((root / folder).rglob("*.py")):
            status = path.stat()
            sources.append((path.relative_to(root).as_posix(), status.st_size, status.st_mtime_ns))
    settings = {name: str(value) for name, value in sorted(jax.config.values.items()) if "cache" not in name}
    environment = {name: os.environ[name] for name in sorted(os.environ) if name.startswith(("XLA_", "OMP_", "NPROC"))}
    identity = [device.platform, device.device_kind, device.id, device.client.platform_version, jax.device_count()]
    versions = [jax.__version__, importlib.metadata.version("jaxlib"), platform.python_version(), np.__version__]
    return digest(versions, str(root), sources, settings, environment, identity, *cores.description())


@contextmanager
def _logged_if_slow(reason: str) -> Generator[None]:
    """Log that the network is compiled if that takes longer than `SLOW_COMPILE_SECONDS`."""
    timer = threading.Timer(SLOW_COMPILE_SECONDS, log.info, ("INFO: Compiling the network %s.", reason))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# ---- files


@contextmanager
def _not_kept_by_jax() -> Generator[None]:
    """Keep JAX from writing the program to its own cache: what JAX has read back it cannot serialise again."""
    name = "jax_persistent_cache_min_compile_time_secs"
    with _setting_lock:
        previous_value = jax.config.values[name]
        jax.config.update(name, NEVER_SECONDS)
        try:
            yield
        finally:
            jax.config.update(name, previous_value)


def _write(path: Path, compiled: Compiled, result: PyTreeDef) -> None:
    """Keep a program; it is not needed, so nothing is said where that fails."""
    from jax.experimental.serialize_executable import serialize

    try:
        payload: bytes = cast(Any, serialize)(compiled)[0]
        form = json.dumps(_form(jax.tree.unflatten(result, range(result.num_leaves)))).encode()
    except Exception as error:  # whatever JAX cannot write
        log.debug("A program is not kept: %s", error)
        return
    body = len(form).to_bytes(8, "little") + form + payload
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not is_private(path.parent):
            return
        with atomic_write(path, through_link=False, durable=False) as file:
            file.write(MAGIC + hashlib.sha256(body).digest() + body)
        _remove_oldest(path.parent, len(body))
    except OSError as error:
        log.debug("A program is not kept: %s", error)


def _read(path: Path, arguments: int, devices: Sequence[Device]) -> tuple[Compiled, PyTreeDef] | None:
    """Return a kept program and the tree of its results; None: there is none, or it is damaged."""
    try:
        if not is_private(path.parent):
            return None
        data = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    start = len(MAGIC) + 32
    if not data.startswith(MAGIC) or hashlib.sha256(data[start:]).digest() != data[len(MAGIC) : start]:
        log.warning("WARNING: The program kept in %s is damaged; it is compiled again.", path)
        return None
    from jax.experimental import serialize_executable

    deserialize = cast(Any, serialize_executable).deserialize_and_load
    end = start + 8 + int.from_bytes(data[start : start + 8], "little")
    result = jax.tree.structure(_unformed(json.loads(data[start + 8 : end])))
    structure = jax.tree.structure(((0,) * arguments, {}))
    flat = jax.tree.structure((0,) * result.num_leaves)
    try:
        return deserialize(data[end:], structure, flat, execution_devices=devices), result
    except Exception as error:  # whatever JAX says to a program that it cannot use
        log.debug("A kept program cannot be used: %s", error)
        return None


def _form(tree: object) -> object:
    """Containers as JSON; tuples with names lose them.

    Raises:
        TypeError: the keys of a dict are not texts.
    """
    if isinstance(tree, dict):
        named = cast("dict[Any, Any]", tree)
        if not all(isinstance(name, str) for name in named):
            raise TypeError("results by something else than their names")
        return {"dict": {name: _form(part) for name, part in named.items()}}
    if isinstance(tree, (tuple, list)):
        return {"tuple" if isinstance(tree, tuple) else "list": [_form(part) for part in cast("list[Any]", tree)]}
    return None if tree is None else 0


def _unformed(form: Any) -> Any:
    """Return the inverse of `_form`; leaves are 0."""
    if not form:
        return form
    ((kind, parts),) = form.items()
    if kind == "dict":
        return {name: _unformed(part) for name, part in parts.items()}
    return {"tuple": tuple, "list": list}[kind](_unformed(part) for part in parts)


_written: dict[Path, int] = {}
"""By folder, the bytes that this process has written since it last added up what is there."""


def _remove_oldest(folder: Path, written: int) -> None:
    """Keep the programs below `CACHE_BYTES`, once and then again whenever a sixteenth of it was written."""
    _written[folder] = _written.get(folder, CACHE_BYTES) + written
    if _written[folder] < CACHE_BYTES // 16:
        return
    _written[folder] = 0
    with os.scandir(folder) as files:
        files_by_status = [(file.stat(), file.path) for file in files]
    total = sum(status.st_size for status, _ in files_by_status)
    for status, path in sorted(files_by_status, key=lambda pair: pair[0].st_mtime):
        if total <= CACHE_BYTES:
            return
        Path(path).unlink(missing_ok=True)
        total -= status.st_size
