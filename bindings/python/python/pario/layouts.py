"""Layouts as values: checked where they are written, and drawn."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from . import _native

#: Cells of a drawing along each dimension, at most.
_CELLS = 48


class Layout:
    """How an array is cut into parts, in the layout language.

    >>> pario.layout("( BLOCK, cyclic(2) ) onto 2x2")
    pario.layout('(block, cyclic(2)) onto 2x2')
    >>> pario.layout("(block, cyclc) onto 2x2")
    Traceback (most recent call last):
    ValueError: layout: expected a distribution: ...
    """

    def __init__(self, text: Any) -> None:
        self.text = _native.normal_layout(str(text))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"pario.layout({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def elements(self, shape: tuple[int, ...], dtype: Any = "u1") -> list[tuple[int, str]]:
        """Bytes and nested FALLS of each part of an array of this shape."""
        return _native.layout_elements(self.text, _array(shape, dtype))

    def owners(self, shape: tuple[int, ...], dtype: Any = "u1") -> np.ndarray[Any, Any]:
        """Which part has which entry."""
        size = int(np.prod(shape, dtype=np.int64))
        itemsize = np.dtype(dtype).itemsize
        offsets = np.arange(size, dtype=np.uint64) * np.uint64(itemsize)
        return np.array(_native.owners(self.text, _array(shape, dtype), offsets), np.int64).reshape(shape)

    def plot(self, shape: tuple[int, ...] = (16, 16), ax: Any = None) -> Any:
        """Draws the first two dimensions with matplotlib; returns the axes."""
        import matplotlib.pyplot as plt  # type: ignore[import-not-found]

        owners = self.owners(shape)
        while owners.ndim > 2:
            owners = owners[0]
        if ax is None:
            ax = plt.subplots()[1]
        ax.imshow(np.atleast_2d(owners), cmap="tab20", interpolation="nearest")
        ax.set_title(self.text)
        return ax

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(self.text)}</code>{picture('u1[16,16]'.replace('u1', 'u8'), self.text)}"


def layout(text: Any) -> Layout:
    """A layout, in normal form; refused with a mark under the character that is wrong."""
    return Layout(text)


def _array(shape: tuple[int, ...], dtype: Any) -> str:
    return f"bytes({np.dtype(dtype).itemsize})[{','.join(map(str, shape))}]"


def picture(array: str, text: str) -> str:
    """An SVG of the first two dimensions: which part has which entries. Large arrays are drawn by samples."""
    head, _, tail = array.partition("[")
    extents, _, order = tail.partition("]")
    shape = [int(n) for n in extents.split(",") if n.strip()]
    if not shape or 0 in shape:
        return ""
    itemsize = _native.element_bytes(head)
    fastest_first = range(len(shape)) if "fortran" in order else range(len(shape) - 1, -1, -1)
    weights = [0] * len(shape)
    weight = itemsize
    for d in fastest_first:
        weights[d] = weight
        weight *= shape[d]
    shown = (shape + [1])[:2]
    steps = [np.unique(np.linspace(0, n - 1, min(n, _CELLS)).astype(np.uint64)) for n in shown]
    rows = steps[0] * np.uint64(weights[0])
    columns = steps[1] * np.uint64(weights[1] if len(shape) > 1 else 0)
    offsets = (rows[:, None] + columns[None, :]).ravel()
    try:
        owners = np.array(_native.owners(text, array, offsets)).reshape(len(rows), len(columns))
    except ValueError:
        return ""
    cell = 6
    rects = "".join(
        f"<rect x='{x * cell}' y='{y * cell}' width='{cell}' height='{cell}' fill='hsl({int(owner) * 137 % 360},60%,65%)'>"
        f"<title>part {int(owner)}</title></rect>"
        for y, line in enumerate(owners)
        for x, owner in enumerate(line)
    )
    return f"<svg width='{len(columns) * cell}' height='{len(rows) * cell}'>{rects}</svg>"
