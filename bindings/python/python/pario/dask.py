"""dask over arrays of the service: chunks that follow the layout, and many workers that write one array."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native
from .array import Array

#: Parts of one dimension beyond which a layout says nothing about chunks.
_MOST_PARTS = 256


def layout_chunks(array: Array) -> tuple[tuple[int, ...], ...] | None:
    """Lengths of the parts that the layout cuts every dimension into; nothing where that is not regular or too fine."""
    if not array.size:
        return None
    weights = np.ones(array.ndim, np.int64)
    order = range(array.ndim) if array.order == "F" else range(array.ndim - 1, -1, -1)
    weight = array.itemsize
    for d in order:
        weights[d] = weight
        weight *= array.shape[d]
    chunks = []
    for extent, step in zip(array.shape, weights):
        offsets = np.arange(extent, dtype=np.uint64) * np.uint64(step)
        owners = np.array(_native.owners(array.layout, array._array_text, offsets))
        bounds: list[int] = (np.flatnonzero(np.diff(owners)) + 1).tolist()
        if len(bounds) >= _MOST_PARTS:
            return None
        chunks.append(tuple(int(n) for n in np.diff([0, *bounds, extent])))
    return tuple(chunks)


def from_pario(array: Array, chunks: Any = None) -> Any:
    """A dask array over an array of the service. Its chunks are the parts of the layout, if nothing else is said."""
    import dask.array

    if chunks is None:
        chunks = layout_chunks(array) or "auto"
    return dask.array.from_array(array, chunks=chunks, name=False, asarray=True, inline_array=False)


def to_pario(values: Any, array: Array, region: Any = None, **how: Any) -> None:
    """Computes a dask array into an array of the service; chunks need not line up with anything."""
    import dask.array

    dask.array.store([values], [array], lock=False, regions=region, **how)


__all__ = ["from_pario", "layout_chunks", "to_pario"]
