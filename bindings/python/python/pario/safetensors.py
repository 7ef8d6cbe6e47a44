"""safetensors: files of tensors by name, read and written without the package of that name, and opened lazily.

A file is eight bytes with the length of its head, the head (JSON: type, shape and place of every tensor), and the values. In the service
each tensor becomes an array, so that every process reads the part that it needs.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from . import _service
from ._dtypes import _small_types
from .array import Array

_TYPES = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "C64": "<c8",
}
_SMALL = {"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}
_METADATA = "__metadata__"
#: No head is longer; the package refuses such files too.
_MOST_HEAD = 100_000_000
_AT_ONCE = 64 << 20


def _dtype(name: str) -> np.dtype[Any]:
    if name in _TYPES:
        return np.dtype(_TYPES[name])
    small = _small_types().get(_SMALL.get(name, ""))
    if small is None:
        raise ValueError(f"a tensor has type {name}" + ("; it needs the package ml_dtypes: pip install ml_dtypes" if name in _SMALL else ", which numpy has no word for"))
    return small


def _name(dtype: np.dtype[Any]) -> str:
    for name, text in _TYPES.items():
        if np.dtype(text) == dtype.newbyteorder("="):
            return name
    for name, text in _SMALL.items():
        if dtype.name == text:
            return name
    raise ValueError(f"safetensors has no word for type {dtype}; cast it first")


class Tensors(Mapping[str, Any]):
    """A file of tensors, of which nothing is read but the head: ``tensors["w"][:, :10]`` maps the rest as it is asked for."""

    def __init__(self, path: Any) -> None:
        self.path = os.fspath(path)
        size = os.path.getsize(self.path)
        with _file(self.path, "rb") as file:
            raw = file.read(8)
            if len(raw) < 8:
                raise ValueError(f"{self.path} is no safetensors file: it has {len(raw)} bytes")
            (length,) = struct.unpack("<Q", raw)
            if length > min(_MOST_HEAD, size - 8):
                raise ValueError(f"{self.path} is no safetensors file: its head would have {length} bytes")
            try:
                head = json.loads(file.read(length))
            except ValueError as error:
                raise ValueError(f"{self.path} is no safetensors file: {error}") from None
        #: Texts that are kept with the tensors.
        self.metadata: dict[str, str] = head.pop(_METADATA, None) or {}
        self._head = head
        self._start = 8 + length
        for name, facts in head.items():
            first, end = facts["data_offsets"]
            due = math.prod(facts["shape"]) * _dtype(facts["dtype"]).itemsize
            if not 0 <= first <= end <= size - self._start or end - first != due:
                raise ValueError(f"{self.path}: tensor {name} lies outside of the file, or has another size than its shape says")

    def __getitem__(self, name: str) -> Any:
        facts = self._head[name]
        shape, dtype = tuple(facts["shape"]), _dtype(facts["dtype"])
        first, end = facts["data_offsets"]
        if first == end:
            return np.zeros(shape, dtype)
        raw = np.memmap(self.path, "u1", "r", self._start + first, (end - first,))
        return np.asarray(raw).view(dtype).reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._head)

    def __len__(self) -> int:
        return len(self._head)

    def __repr__(self) -> str:
        return f"<pario.safetensors.Tensors {self.path}: {len(self)} tensors>"


def open(path: Any, *, url: Any = None) -> Mapping[str, Any]:  # noqa: A001
    """Tensors by name, lazily: of a file, or of a directory of the service (``"pario:///models/7"``), whose tensors are arrays."""
    text = os.fspath(path)
    return Stored(text[len("pario:") :], url) if text.startswith("pario:") else Tensors(text)


class Stored(Mapping[str, Any]):
    """Tensors below a directory of the service, each an array."""

    def __init__(self, path: str, url: Any = None) -> None:
        self.service = _service.connect(url)
        self.path = "/" + path.strip("/")
        self._paths = {
            below[len(self.path) :].lstrip("/").replace("%2F", "/"): below
            for below, facts in self.service.walk(self.path)
            if facts["kind"] == "file" and facts["array"] is not None
        }

    def __getitem__(self, name: str) -> Array:
        return Array(self.service, self._paths[name], "r")

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def save(path: Any, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Writes tensors (arrays of numpy or of the service) into a file, in pieces of at most 64 MiB."""
    head: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    # The package aligns by putting wide types first.
    given = {name: t if isinstance(t, Array) else np.asarray(t) for name, t in tensors.items()}
    names = sorted(given, key=lambda name: (-given[name].dtype.itemsize, name))
    at = 0
    for name in names:
        tensor = given[name]
        size = math.prod(tensor.shape) * tensor.dtype.itemsize
        head[name] = {"dtype": _name(tensor.dtype), "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(head, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    text = os.fspath(path)
    partial = f"{text}.partial"
    with _file(partial, "wb") as file:
        file.write(struct.pack("<Q", len(raw)) + raw)
        for name in names:
            for piece in _pieces(given[name]):
                wire = piece if piece.dtype.kind == "V" else piece.astype(piece.dtype.newbyteorder("<"), copy=False)
                file.write(np.ascontiguousarray(wire).reshape(-1).view("u1").data)
    os.replace(partial, text)


def _file(path: str, mode: str) -> Any:
    import builtins

    return builtins.open(path, mode)


def _pieces(tensor: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The values in C order, some rows at a time."""
    if not tensor.ndim or not tensor.size:
        yield np.asarray(tensor[...])
        return
    row = max(1, math.prod(tensor.shape[1:]) * tensor.dtype.itemsize)
    step = max(1, _AT_ONCE // row)
    for first in range(0, tensor.shape[0], step):
        yield np.asarray(tensor[first : first + step])


def import_file(path: Any, directory: str, *, layout: Any = None, url: Any = None) -> Stored:
    """Makes an array of the service of each tensor of a file, below a directory. ``layout`` is a text for all, or a function of name and shape."""
    service = _service.connect(url)
    root = "/" + directory.strip("/")
    service.mkdir(root)
    tensors = Tensors(path)
    for name in tensors:
        values = tensors[name]
        chosen = layout(name, values.shape) if callable(layout) else layout
        below = f"{root}/{name.replace('/', '%2F')}"
        with service.create(below, values.shape, values.dtype, layout=chosen, overwrite=True) as array:
            for first, piece in _numbered(values):
                array[first] = piece
    return Stored(root, url)


def _numbered(values: np.ndarray[Any, Any]) -> Iterator[tuple[Any, np.ndarray[Any, Any]]]:
    if not values.ndim:
        yield ..., values
        return
    at = 0
    for piece in _pieces(values):
        yield slice(at, at + len(piece)), piece
        at += len(piece)


def export(directory: str, path: Any, metadata: Mapping[str, str] | None = None, *, url: Any = None) -> None:
    """Writes all arrays below a directory of the service into one file."""
    save(path, Stored(directory, url), metadata)


__all__ = ["Stored", "Tensors", "export", "import_file", "open", "save"]
