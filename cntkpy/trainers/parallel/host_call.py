"""A function of this process that a compiled program calls with the memory of its arrays, on a CPU.

`jax.pure_callback` copies arguments and results several times (5 ms for 3 MB). XLA's interface for foreign functions
(the structures of `xla/ffi/api/c_api.h`, which are kept for a year and more; `jax.ffi` describes it) copies nothing.
The names of its structures and fields are those of that header.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from collections.abc import Callable, Sequence
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.networks.arrays.lazy import jax

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array = Any

Inside = Callable[[list["NDArray[Any]"]], None]
"""Gets flat views of arrays, and changes them in place."""

VERSION = (0, 1)
"""Of the interface."""

METADATA = 1
"""The `type` of the extension that asks for a handler's version."""

EXECUTE, INTERNAL = 3, 13
"""The `stage` in which a handler is called with arrays; the code of an error."""

DTYPES = {2: np.int8, 4: np.int32, 5: np.int64, 11: np.float32, 12: np.float64}
"""By `XLA_FFI_DataType`, what arrays may consist of."""


class _Extension(Structure):
    """XLA_FFI_Extension_Base, and after it what XLA_FFI_Metadata_Extension has."""

    _fields_ = (("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", c_void_p))


class _Version(Structure):
    _fields_ = (("struct_size", c_size_t), ("extension_start", c_void_p), ("major", c_int), ("minor", c_int))


class _Metadata(Structure):
    """Common beginning of all versions of XLA_FFI_Metadata."""

    _fields_ = (("struct_size", c_size_t), ("api_version", _Version), ("traits", c_uint32))


class _Arrays(Structure):
    """XLA_FFI_Args and XLA_FFI_Rets."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", c_void_p),
        ("size", c_int64),
        ("types", c_void_p),
        ("arrays", POINTER(c_void_p)),
    )


class _Buffer(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", c_void_p),
        ("dtype", c_int),
        ("data", c_void_p),
        ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    )


SIZE, DATA = ctypes.sizeof(_Buffer), int(_Buffer.data.offset)
PLACE = struct.Struct("=Qqq")
"""The fields of a `_Buffer` from `data` on."""


class _Error(Structure):
    """XLA_FFI_Error_Create_Args."""

    _fields_ = (("struct_size", c_size_t), ("extension_start", c_void_p), ("message", c_char_p), ("errc", c_int))


CREATE_ERROR = ctypes.CFUNCTYPE(c_void_p, POINTER(_Error))


class _Api(Structure):
    """Common beginning of all versions of XLA_FFI_Api."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", c_void_p),
        ("api_version", _Version),
        ("internal_api", c_void_p),
        ("create_error", CREATE_ERROR),
    )


class _CallFrame(Structure):
    """Common beginning of all versions of XLA_FFI_CallFrame."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", c_void_p),
        ("api", POINTER(_Api)),
        ("ctx", c_void_p),
        ("stage", c_int),
        ("args", _Arrays),
        ("rets", _Arrays),
    )


HANDLER = ctypes.CFUNCTYPE(c_void_p, POINTER(_CallFrame))

_registered: list[Any] = []
"""Handlers live as long as the process: programs may call them."""


def register(name: str, inside: Inside) -> None:
    """Let programs call a function by a name, see `call`.

    What the function raises becomes the error of the program.
    """

    def handle(pointer: Any) -> int | None:
        frame: Any = pointer.contents
        try:
            if frame.extension_start:
                return _answer(frame.extension_start)
            if frame.stage == EXECUTE:
                inside(_changed_in_place(frame))
        except BaseException as error:  # nothing may pass into XLA
            return _error(frame.api, f"{type(error).__name__}: {error}")
        return None

    handler = HANDLER(handle)
    _registered.append(handler)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu")


def call(name: str, arrays: Sequence[Array]) -> list[Array]:
    """In a compiled program: the arrays after the registered function has changed them."""
    kinds = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
    same = {k: k for k in range(len(kinds))}
    return list(jax.ffi.ffi_call(name, kinds, has_side_effect=True, input_output_aliases=same)(*arrays))


def _answer(extension: int) -> None:
    """Set the version of the interface that is used here."""
    asked = _Extension.from_address(extension)
    if asked.type == METADATA:
        metadata: Any = _Metadata.from_address(asked.metadata)
        metadata.api_version.major, metadata.api_version.minor = VERSION


def _changed_in_place(frame: Any) -> list[NDArray[Any]]:
    """Flat views of the results, which hold the arguments."""
    count = frame.rets.size
    pairs = zip(_addresses(frame.args.arrays, count), _addresses(frame.rets.arrays, count), strict=True)
    views: list[NDArray[Any]] = []
    for argument, result in pairs:
        place, view = _view(result)
        if c_void_p.from_address(argument + DATA).value != place:
            view[:] = _view(argument)[1]
        views.append(view)
    return views


def _addresses(begin: Any, count: int) -> tuple[int, ...]:
    """So many pointers, from a place on."""
    return struct.unpack(f"={count}Q", ctypes.string_at(begin, 8 * count))


def _view(address: int) -> tuple[int, NDArray[Any]]:
    """Return the address of the memory of the `_Buffer` at an address, and the memory."""
    described = ctypes.string_at(address, SIZE)
    place, rank, dims = PLACE.unpack_from(described, DATA)
    return place, _memory(described, ctypes.string_at(dims, 8 * rank) if rank else b"")


@functools.lru_cache(1024)
def _memory(described: bytes, dims: bytes) -> NDArray[Any]:
    """Return the memory of a `_Buffer`, which most often lies at the same address as in the call before.

    The array is not looked at but in a call that has this memory.
    """
    buffer: Any = _Buffer.from_buffer_copy(described)
    dtype = np.dtype(DTYPES[buffer.dtype])
    count = math.prod(struct.unpack(f"={buffer.rank}q", dims))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(buffer.data or 0)
    return np.frombuffer(memoryview(memory), dtype)


def _error(api: Any, message: str) -> int:
    request = _Error(ctypes.sizeof(_Error), None, message.encode(), INTERNAL)
    return api.contents.create_error(ctypes.byref(request))
