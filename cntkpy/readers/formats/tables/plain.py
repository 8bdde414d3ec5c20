"""Plain types: the types of Arrow that streams, filters and keys know. Arrays of other types are cast to them.

Extension types become their storage, views and run-ends the arrays that they stand for, decimals and half floats the
numbers that kernels take. So no caller meets a type for which pyarrow lacks a function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cntkpy.readers.common.sequences import starts_of

from .library import arrow, compute

_INT64_DIGITS = 18
"""Decimal digits that fit into int64 in any case."""
_MOST_SHARED, _FEW_VALUES = 64, 1 << 20
"""Lists of a list view have at most so many values for each one that is stored, counted from so many stored ones on."""
_UUID, _BOOL8 = "arrow.uuid", "arrow.bool8"
_DASHES = (8, 13, 18, 23)
"""Places of the dashes in the text of a UUID."""


def plain_type(kind: Any) -> Any:
    """Return the plain type of a type; the type itself where it is plain.

    Args:
        kind: a type of Arrow.
    """
    pa, types = arrow(), arrow().types
    if isinstance(kind, pa.BaseExtensionType):
        known = {_UUID: pa.large_string(), _BOOL8: pa.bool_()}.get(kind.extension_name)
        return plain_type(kind.storage_type) if known is None else known
    if (types.is_dictionary(kind) or types.is_run_end_encoded(kind)) and types.is_nested(storage_type(kind.value_type)):
        return kind  # to write such values out may take any number of bytes
    if types.is_dictionary(kind):
        values = plain_type(kind.value_type)
        if not _has_bytes(values):
            return values
        return kind if values == kind.value_type else pa.dictionary(kind.index_type, values, kind.ordered)
    if types.is_run_end_encoded(kind):
        values = plain_type(kind.value_type)
        return pa.dictionary(pa.int64(), values) if _has_bytes(values) else values
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_decimal(kind):
        return pa.int64() if kind.scale <= 0 and kind.precision - kind.scale <= _INT64_DIGITS else pa.float64()
    if types.is_float16(kind):
        return pa.float32()
    return _plain_lists(kind)


def _plain_lists(kind: Any) -> Any:
    pa, types = arrow(), arrow().types
    if types.is_map(kind):
        key, item = plain_type(kind.key_type), plain_type(kind.item_type)
        return kind if (key, item) == (kind.key_type, kind.item_type) else pa.map_(key, item)
    if types.is_fixed_size_list(kind):
        values = plain_type(kind.value_type)
        return kind if values == kind.value_type else pa.list_(values, kind.list_size)
    view = types.is_list_view(kind) or types.is_large_list_view(kind)
    if not (view or types.is_list(kind) or types.is_large_list(kind)):
        return kind
    values = plain_type(kind.value_type)
    if values == kind.value_type and not view:
        return kind
    return (pa.list_ if types.is_list(kind) or types.is_list_view(kind) else pa.large_list)(values)


def _has_bytes(kind: Any) -> bool:
    """Return whether values are texts or bytes: their dictionaries are kept, since they may be much smaller."""
    types = arrow().types
    return any(test(kind) for test in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary))


def storage_type(kind: Any) -> Any:
    """Return the type that an extension type is stored as; other types as they are."""
    return storage_type(kind.storage_type) if isinstance(kind, arrow().BaseExtensionType) else kind


def storage(array: Any) -> Any:
    """Return the array that an array of an extension type is stored as; others as they are."""
    return storage(array.storage) if isinstance(array.type, arrow().BaseExtensionType) else array


def expanded_bytes(array: Any) -> int:
    """Return the bytes of an array whose dictionary is written out, int.

    Args:
        array: of a plain type.
    """
    if not arrow().types.is_dictionary(array.type):
        return array.nbytes
    lengths = compute().binary_length(array.dictionary).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    codes = array.indices.drop_null().to_numpy(zero_copy_only=False)
    return int(lengths[codes].sum()) + 8 * len(array) if len(lengths) else 8 * len(array)


def plain_array(array: Any) -> Any:
    """Return an array, or one of the plain type with the same values.

    Args:
        array: an Arrow array that was validated.
    """
    pa, types, kind = arrow(), arrow().types, array.type
    target = plain_type(kind)
    if target == kind:
        return array
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == _UUID:
            return _uuids(array.storage)
        return array.storage.cast(target) if kind.extension_name == _BOOL8 else plain_array(array.storage)
    if types.is_dictionary(kind):
        values = plain_array(array.dictionary)
        if not types.is_dictionary(target):
            return values.take(array.indices)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=kind.ordered)
    if types.is_run_end_encoded(kind):
        ends = array.run_ends.to_numpy(zero_copy_only=False)
        runs = pa.array(np.searchsorted(ends, array.offset + np.arange(len(array)), side="right"))
        values = plain_array(array.values)
        return pa.DictionaryArray.from_arrays(runs, values) if types.is_dictionary(target) else values.take(runs)
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        return _without_view(array, target)
    if types.is_map(kind):
        pairs = pa.StructArray.from_arrays(
            [plain_array(array.keys), plain_array(array.items)], fields=[target.key_field, target.item_field]
        )
        return _with_child(array, target, 2, pairs)
    if types.is_fixed_size_list(kind):
        return _with_child(array, target, 1, plain_array(array.values))
    if types.is_list(kind) or types.is_large_list(kind):
        return _with_child(array, target, 2, plain_array(array.values))
    return array.cast(target, safe=False)  # a decimal may have more digits than a double


def _with_child(array: Any, target: Any, buffers: int, child: Any) -> Any:
    """Return lists with other values; buffers: so many belong to the lists themselves."""
    own_buffers = array.buffers()[:buffers]
    return arrow().Array.from_buffers(target, len(array), own_buffers, offset=array.offset, children=[child])


def _without_view(array: Any, target: Any) -> Any:
    """Return a list view as lists.

    Args:
        array: a list view; its lists may share values.
        target: the type of the lists.

    Raises:
        ArrowInvalid: the lists have many times the values that there are.
    """
    pa = arrow()
    lengths = compute().list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if lengths.sum() > _MOST_SHARED * max(len(array.values), _FEW_VALUES):
        raise pa.ArrowInvalid(f"{len(array)} list views share {len(array.values)} values")
    offsets = pa.array(starts_of(lengths), pa.int32() if pa.types.is_list(target) else pa.int64())
    make = pa.ListArray if pa.types.is_list(target) else pa.LargeListArray
    return make.from_arrays(offsets, plain_array(array.flatten()), mask=array.is_null())


def _uuids(storage: Any) -> Any:
    """Return the texts of UUIDs, as `00000000-0000-0000-0000-000000000001`.

    Args:
        storage: fixed_size_binary(16).
    """
    pa, count = arrow(), len(storage)
    if not count:
        return pa.array([], pa.large_string())
    data = np.frombuffer(storage.buffers()[1], np.uint8, 16 * count, 16 * storage.offset).reshape(count, 16)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.full((count, 36), ord("-"), np.uint8)
    places = [place for place in range(36) if place not in _DASHES]
    text[:, places[::2]], text[:, places[1::2]] = digits[data >> 4], digits[data & 15]
    offsets = np.arange(count + 1, dtype=np.int64) * 36
    texts = pa.Array.from_buffers(pa.large_string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    if storage.null_count:
        texts = compute().if_else(storage.is_valid(), texts, pa.scalar(None, pa.large_string()))
    return texts
