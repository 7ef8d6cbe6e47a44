"""Types of entries: what the service calls them, and what numpy does.

The service knows types by kind and size. Everything else that numpy has a fixed size for (dates, fixed strings, other byte orders,
records, the types of ml_dtypes) is kept as entries of so many bytes, with the type of numpy as text in the named value
``pario.dtype`` of the file.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

#: The named value that keeps a type the service has no word for.
DTYPE_VALUE = "pario.dtype"

_ELEMENTS = {
    "?1": "bool",
    "u1": "u8",
    "u2": "u16",
    "u4": "u32",
    "u8": "u64",
    "i1": "i8",
    "i2": "i16",
    "i4": "i32",
    "i8": "i64",
    "f2": "f16",
    "f4": "f32",
    "f8": "f64",
    "c8": "c64",
    "c16": "c128",
}
_DTYPES = {
    element: np.dtype("bool" if key == "?1" else key) for key, element in _ELEMENTS.items()
}


def element_of(dtype: np.dtype[Any]) -> tuple[str, bytes | None]:
    """The type of entries in the words of the service, and the text that is kept beside it if those do not say it all.

    >>> element_of(np.dtype("f8"))
    ('f64', None)
    >>> element_of(np.dtype("M8[ns]"))
    ('bytes(8)', b'"<M8[ns]"')
    """
    kind = "?" if dtype.kind == "b" else dtype.kind
    element = _ELEMENTS.get(f"{kind}{dtype.itemsize}")
    if element is not None and dtype.isnative and _DTYPES[element] == dtype:
        return element, None
    if dtype.hasobject or dtype.kind == "T":
        raise ValueError(
            f"dtype: {dtype} has entries of no fixed size; give one that has, such as 'S20' or 'U20' for texts"
        )
    text = _text_of(dtype)
    if dtype_of_text(text) != dtype:
        raise ValueError(f"dtype: {dtype} cannot be written down; give one that numpy can name")
    return f"bytes({dtype.itemsize})", text


def dtype_of(element: str, text: bytes | None) -> np.dtype[Any]:
    """The type of numpy for entries of the service, with the text that is kept beside them."""
    if text is not None:
        try:
            return dtype_of_text(text)
        except TypeError:
            # One of ml_dtypes, which is not here, or of another version of it: entries come as they are.
            return np.dtype(f"V{element[len('bytes(') : -1]}")
    found = _DTYPES.get(element)
    if found is not None:
        return found
    return np.dtype(f"V{element[len('bytes(') : -1]}")


def _text_of(dtype: np.dtype[Any]) -> bytes:
    if is_small(dtype) and dtype.name in _small_types():
        return json.dumps(dtype.name).encode()
    return json.dumps(np.lib.format.dtype_to_descr(dtype)).encode()


def is_small(dtype: np.dtype[Any]) -> bool:
    """Whether another package than numpy made the type, whose kind may be any; ml_dtypes is one."""
    return dtype.num >= 256


def dtype_of_text(text: bytes) -> np.dtype[Any]:
    """The type that :func:`element_of` has written down."""
    said = json.loads(text)
    if isinstance(said, str) and said in _small_types():
        return _small_types()[said]
    return np.lib.format.descr_to_dtype(_tuples(said))


def _tuples(said: Any) -> Any:
    """JSON has lists where numpy wants tuples: fields, and shapes in them."""
    if not isinstance(said, list):
        return said
    if said and all(isinstance(field, list) for field in said):
        return [_field(field) for field in said]
    return tuple(_tuples(part) for part in said)


def _field(field: list[Any]) -> tuple[Any, ...]:
    name, kind, *shape = field
    name = tuple(name) if isinstance(name, list) else name
    return (name, _tuples(kind), *(tuple(s) if isinstance(s, list) else s for s in shape))


def _small_types() -> dict[str, np.dtype[Any]]:
    """The types of ml_dtypes, if it is there: bfloat16 and those of 8 bits and fewer."""
    known = sys.modules.get("ml_dtypes")
    if known is None:
        try:
            import ml_dtypes as known  # type: ignore[no-redef]
        except ImportError:
            return {}
    kinds = [kind for kind in vars(known).values() if isinstance(kind, type) and issubclass(kind, np.generic)]
    return {np.dtype(kind).name: np.dtype(kind) for kind in kinds}


def as_buffer(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same memory with entries that the buffer protocol has a word for."""
    kind = array.dtype.kind
    if kind in "mM":
        return array.view("i8")
    if is_small(array.dtype) or kind == "V" and array.dtype.names is None and array.dtype.subdtype is None:
        return array.view(f"V{array.dtype.itemsize}")
    return array


def is_of_torch(value: Any) -> bool:
    """Whether it is a tensor of PyTorch, without asking for the package where nobody has it."""
    known = sys.modules.get("torch")
    return known is not None and isinstance(value, known.Tensor)
