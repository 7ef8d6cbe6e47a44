"""Attributes of an array: values that JSON has, kept with the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import numpy as np

if TYPE_CHECKING:
    from .array import Array

#: Named values of this package; programs do not see them among their attributes.
RESERVED = "pario."


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as JSON has them."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"attributes hold what JSON has; {type(value).__name__} is none of that")


def encoded(name: str, value: Any) -> tuple[str, bytes]:
    """An attribute as a named value. A name may have characters that names of the service may not."""
    if not isinstance(name, str) or not name:
        raise TypeError("the name of an attribute is a text that is not empty")
    safe = quote(name, safe=" !\"#$&'()*+,:;<=>?@[\\]^`{|}~")
    if safe.startswith(RESERVED):
        raise ValueError(f"names that begin with '{RESERVED}' are kept for the package")
    return safe, json.dumps(value, default=_plain).encode()


class Attributes(MutableMapping[str, Any]):
    """The attributes of an array, read from the service at each use, so that all processes see the same.

    >>> a.attrs["unit"] = "m/s"
    >>> a.attrs.update(scale=[1, 2], made_by={"name": "a test"})   # all of it or nothing
    >>> dict(a.attrs)
    {'made_by': {'name': 'a test'}, 'scale': [1, 2], 'unit': 'm/s'}
    """

    def __init__(self, array: "Array") -> None:
        self._array = array

    def asdict(self) -> dict[str, Any]:
        """All of them."""
        values = self._array.service.connection.values(self._array.path)
        return {unquote(n): json.loads(v) for n, v in values if not n.startswith(RESERVED)}

    def __getitem__(self, name: str) -> Any:
        return self.asdict()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.asdict())

    def __len__(self) -> int:
        return len(self.asdict())

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def __delitem__(self, name: str) -> None:
        self[name]
        self._change([], [encoded(name, None)[0]])

    def update(self, *args: Any, **more: Any) -> None:  # type: ignore[override]
        """Sets several at once: all of them or none."""
        self._change([encoded(n, v) for n, v in dict(*args, **more).items()], [])

    def clear(self) -> None:
        """Removes all."""
        self._change([], [encoded(name, None)[0] for name in self])

    def _change(self, put: list[tuple[str, bytes]], remove: list[str]) -> None:
        self._array.service.connection.change_values(self._array.path, put, remove)

    def __repr__(self) -> str:
        return f"Attributes({self.asdict()!r})"
