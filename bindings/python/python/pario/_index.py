"""What an index means: which indices of every dimension are read, and what of them the program gets.

An index of numpy becomes a :class:`Selection`: a *region*, which is one ascending choice of indices per dimension, and the way from the
entries of that region to the result. Regions are what the service knows. Nothing here does I/O.

- Basic indices (integers, slices, ``...``, ``newaxis``) are a region and a view of it.
- One list of indices, or one mask of one dimension, is a region with a list.
- Several lists choose points. Their positions in the array as a line, sorted and each once, are a region of that line.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

Axis = tuple[int, int, int] | np.ndarray
NdArray = np.ndarray[Any, Any]


@dataclass(slots=True)
class Selection:
    """A region of an array, and the result as a part of it."""

    #: Per dimension start, count and step, or ascending indices.
    axes: tuple[Axis, ...]
    #: Entries of the region along each dimension.
    region_shape: tuple[int, ...]
    #: Shape of the result.
    shape: tuple[int, ...]
    #: The basic index that makes the result of the region.
    view: tuple[Any, ...]
    #: After the view: dimension of it and positions to take along it, one after the other.
    takes: tuple[tuple[int, NdArray], ...] = ()
    #: After that: the dimensions that go to the front, if those of the lists do.
    to_front: tuple[int, int] | None = None
    #: The region is of the array as a line, and these are the positions of the result in it.
    points: NdArray | None = None
    #: The result is one entry, not an array.
    is_scalar: bool = False

    def result(self, region: NdArray) -> NdArray:
        """The result, of the entries of the region."""
        if self.points is not None:
            return region[self.points]
        found = region[(*self.view, ...)]
        for dimension, positions in self.takes:
            found = np.take(found, positions, axis=dimension)
        if self.to_front is not None:
            at, count = self.to_front
            found = np.moveaxis(found, range(at, at + count), range(count))
        return found


class _Gap:
    """An ellipsis that stands for no dimension. Lists on both its sides are not neighbours all the same."""


_GAP = _Gap()


def _count_of(axis: Axis) -> int:
    return axis[1] if isinstance(axis, tuple) else len(axis)


def _range_of(key: slice, extent: int) -> tuple[tuple[int, int, int], bool]:
    """The ascending range of a slice, and whether the slice goes down."""
    start, stop, step = key.indices(extent)
    count = len(range(start, stop, step))
    if count == 0:
        return (0, 0, 1), False
    if step > 0:
        return (start, count, step), False
    return (start + (count - 1) * step, count, -step), True


def _integer(key: Any, extent: int, dimension: int) -> int:
    index = operator.index(key)
    if not -extent <= index < extent:
        raise IndexError(
            f"index {index} is out of bounds for axis {dimension} with size {extent}"
        )
    return index + extent if index < 0 else index


def _is_integer(key: Any) -> bool:
    if isinstance(key, (bool, np.bool_)):
        return False
    if isinstance(key, (int, np.integer)):
        return True
    if isinstance(key, np.ndarray):
        return key.ndim == 0 and key.dtype.kind in "iu"
    return hasattr(key, "__index__") and not isinstance(key, (list, tuple))


def _list_of(key: Any) -> NdArray:
    """A list of indices or a mask, as an array."""
    array = np.asarray(key)
    if array.size == 0 and isinstance(key, (list, tuple)):
        array = array.astype(np.intp)
    if array.dtype.kind not in "iub":
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices")
    return array


def _wrapped(indices: NdArray, extent: int, dimension: int) -> NdArray:
    """Indices from the beginning; refused outside of the array."""
    indices = indices.astype(np.int64, copy=False)
    if indices.size:
        low, high = int(indices.min()), int(indices.max())
        if low < -extent or high >= extent:
            bad = low if low < -extent else high
            raise IndexError(
                f"index {bad} is out of bounds for axis {dimension} with size {extent}"
            )
        if low < 0:
            indices = np.where(indices < 0, indices + extent, indices)
    return indices


def _expanded(key: Any, shape: tuple[int, ...]) -> list[Any]:
    """The index with a slice for every dimension that it leaves out; masks become lists."""
    keys = list(key) if isinstance(key, tuple) else [key]
    parts: list[Any] = []
    dots = None
    used = 0
    for part in keys:
        if part is Ellipsis:
            if dots is not None:
                raise IndexError("an index can only have a single ellipsis ('...')")
            dots = len(parts)
        elif part is None or isinstance(part, slice):
            parts.append(part)
            used += part is not None
        elif _is_integer(part):
            parts.append(part)
            used += 1
        else:
            array = _list_of(part)
            if array.dtype.kind == "b":
                parts.append(("mask", array, used))
                used += array.ndim
            else:
                parts.append(array)
                used += 1
    if used > len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed"
        )
    missing: list[Any] = [slice(None)] * (len(shape) - used)
    if dots is not None and not missing:
        missing = [_GAP]
    at = len(parts) if dots is None else dots
    parts[at:at] = missing
    found: list[Any] = []
    dimension = 0
    for part in parts:
        if isinstance(part, tuple):
            mask = part[1]
            extents = shape[dimension : dimension + mask.ndim]
            for d, (has, wants) in enumerate(zip(mask.shape, extents)):
                # A mask without entries chooses nothing, of any extent: numpy and the array API standard have it so.
                if has not in (wants, 0):
                    raise IndexError(
                        f"boolean index did not match indexed array along axis {dimension + d}; "
                        f"size of axis is {wants} but size of corresponding boolean axis is {has}"
                    )
            if mask.ndim == 0:
                found.append(("truth", np.zeros(int(bool(mask)), np.int64)))
            else:
                found.extend(mask.nonzero())
            dimension += mask.ndim
        else:
            found.append(part)
            dimension += part is not None and part is not _GAP
    return found


#: A short way for what programs ask most: axes of the region, its shape, and the shape of the result.
Plain = tuple[list[tuple[int, int, int]], list[int], tuple[int, ...]]


def plain(key: Any, shape: tuple[int, ...]) -> Plain | None:
    """The region of an index of integers and ascending slices that is right; nothing for any other, which :func:`select` knows or refuses.

    >>> plain((slice(1, 4, 2), -1), (5, 3))
    ([(1, 2, 2), (2, 1, 1)], [2, 1], (2,))
    """
    keys = key if type(key) is tuple else (key,)
    if not shape or len(keys) > len(shape):
        return None
    axes: list[tuple[int, int, int]] = []
    region: list[int] = []
    result: list[int] = []
    for part, extent in zip(keys, shape):
        if type(part) is int:
            index = part + extent if part < 0 else part
            if not 0 <= index < extent:
                return None
            axes.append((index, 1, 1))
            region.append(1)
        elif type(part) is slice:
            start, stop, step = part.indices(extent)
            if step < 0 or stop <= start:
                return None
            count = (stop - start + step - 1) // step
            axes.append((start, count, step))
            region.append(count)
            result.append(count)
        else:
            return None
    for extent in shape[len(keys) :]:
        axes.append((0, extent, 1))
        region.append(extent)
        result.append(extent)
    return axes, region, tuple(result)


def select(key: Any, shape: tuple[int, ...], order: str = "C") -> Selection:
    """What an index of numpy selects.

    >>> select((slice(None, None, -2), 1), (5, 3)).axes
    ((0, 3, 2), (1, 1, 1))
    """
    parts = _expanded(key, shape)
    lists = [p for p in parts if isinstance(p, (np.ndarray, tuple)) and not _is_integer(p)]
    stays = _adjacent(parts)
    parts = [part for part in parts if part is not _GAP]
    if not lists:
        return _basic(parts, shape, key)
    if len(lists) == 1 and isinstance(lists[0], np.ndarray):
        return _one_list(parts, shape, stays)
    return _points(parts, shape, order, stays)


def _basic(parts: list[Any], shape: tuple[int, ...], key: Any) -> Selection:
    axes: list[Axis] = []
    view: list[Any] = []
    result: list[int] = []
    for part in parts:
        dimension = len(axes)
        if part is None:
            view.append(None)
            result.append(1)
        elif isinstance(part, slice):
            axis, goes_down = _range_of(part, shape[dimension])
            axes.append(axis)
            result.append(axis[1])
            view.append(slice(None, None, -1) if goes_down else slice(None))
        else:
            axes.append((_integer(part, shape[dimension], dimension), 1, 1))
            view.append(0)
    has_dots = key is Ellipsis or (isinstance(key, tuple) and any(k is Ellipsis for k in key))
    return Selection(
        tuple(axes),
        tuple(_count_of(a) for a in axes),
        tuple(result),
        tuple(view),
        is_scalar=not result and not has_dots,
    )


def _adjacent(parts: list[Any]) -> bool:
    """Whether lists and integers stand side by side, so that what they make stays where they are."""
    basic = (slice, _Gap, type(None))
    advanced = [i for i, p in enumerate(parts) if not isinstance(p, basic)]
    return not advanced or advanced[-1] - advanced[0] == len(advanced) - 1


def _one_list(parts: list[Any], shape: tuple[int, ...], stays: bool) -> Selection:
    axes: list[Axis] = []
    view: list[Any] = []
    result: list[int] = []
    take = 0
    positions = np.zeros(0, np.intp)
    list_shape: tuple[int, ...] = ()
    for part in parts:
        dimension = len(axes)
        if part is None:
            view.append(None)
            result.append(1)
        elif isinstance(part, slice):
            axis, goes_down = _range_of(part, shape[dimension])
            axes.append(axis)
            result.append(axis[1])
            view.append(slice(None, None, -1) if goes_down else slice(None))
        elif _is_integer(part):
            axes.append((_integer(part, shape[dimension], dimension), 1, 1))
            view.append(0)
        else:
            wanted = _wrapped(part, shape[dimension], dimension)
            once, inverse = np.unique(wanted.ravel(), return_inverse=True)
            axes.append(_as_axis(once))
            take, list_shape = len(result), wanted.shape
            positions = inverse.reshape(wanted.shape)
            view.append(slice(None))
            result.extend(wanted.shape)
    to_front = None
    final = tuple(result)
    if not stays and take > 0:
        to_front = (take, len(list_shape))
        rest = result[:take] + result[take + len(list_shape) :]
        final = list_shape + tuple(rest)
    return Selection(
        tuple(axes),
        tuple(_count_of(a) for a in axes),
        final,
        tuple(view),
        takes=((take, positions),),
        to_front=to_front,
    )


def _as_axis(once: NdArray) -> Axis:
    """Ascending indices as a range where they are one."""
    if len(once) == 0:
        return (0, 0, 1)
    if len(once) == 1:
        return (int(once[0]), 1, 1)
    steps = np.diff(once)
    if (steps == steps[0]).all():
        return (int(once[0]), len(once), int(steps[0]))
    return once.astype(np.uint64)


def _points(
    parts: list[Any], shape: tuple[int, ...], order: str, stays: bool
) -> Selection:
    """Several lists: the positions of all entries of the result in the array as a line."""
    lists: list[tuple[int | None, NdArray]] = []
    slices: list[tuple[int | None, int, NdArray]] = []
    d: int | None
    dimension = 0
    first_list: int | None = None
    for part in parts:
        if part is None:
            slices.append((None, len(slices), np.zeros(1, np.int64)))
        elif isinstance(part, slice):
            start, stop, step = part.indices(shape[dimension])
            slices.append((dimension, len(slices), np.arange(start, stop, step, dtype=np.int64)))
            dimension += 1
        else:
            if first_list is None:
                first_list = len(slices)
            if isinstance(part, tuple):
                lists.append((None, part[1]))
            elif _is_integer(part):
                index = _integer(part, shape[dimension], dimension)
                lists.append((dimension, np.asarray(index, np.int64)))
                dimension += 1
            else:
                lists.append((dimension, _wrapped(part, shape[dimension], dimension)))
                dimension += 1
    try:
        together = np.broadcast_shapes(*(indices.shape for _, indices in lists))
    except ValueError:
        shapes = " ".join(str(indices.shape) for _, indices in lists)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None
    before = first_list if stays and first_list else 0
    final = tuple(len(s[2]) for s in slices)
    final = final[:before] + together + final[before:]
    weights = np.ones(len(shape), np.int64)
    fastest_first = range(len(shape)) if order == "F" else range(len(shape) - 1, -1, -1)
    weight = 1
    for each in fastest_first:
        weights[each] = weight
        weight *= shape[each]
    flat = np.zeros((1,) * len(final), np.int64)
    for d, indices in lists:
        if d is not None:
            tail = (1,) * (len(final) - before - len(together))
            flat = flat + (indices * weights[d]).reshape(
                (1,) * (before + len(together) - indices.ndim) + indices.shape + tail
            )
    for d, number, indices in slices:
        if d is not None:
            at = number if number < before else number + len(together)
            flat = flat + (indices * weights[d]).reshape(
                (1,) * at + (-1,) + (1,) * (len(final) - at - 1)
            )
    flat = np.broadcast_to(flat, final)
    once, inverse = np.unique(flat.ravel(), return_inverse=True)
    return Selection(
        (_as_axis(once),),
        (len(once),),
        final,
        (),
        points=inverse.reshape(final),
    )


def select_orthogonal(key: Any, shape: tuple[int, ...], order: str = "C") -> Selection:
    """Lists and masks of one dimension each, every one for itself, as h5py and zarr have them."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(k is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (len(shape) - len(keys) + 1)
    keys += [slice(None)] * (len(shape) - len(keys))
    if len(keys) != len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, but {len(keys)} were indexed"
        )
    axes: list[Axis] = []
    view: list[Any] = []
    result: list[int] = []
    takes: list[tuple[int, NdArray]] = []
    for dimension, (part, extent) in enumerate(zip(keys, shape)):
        if isinstance(part, slice):
            axis, goes_down = _range_of(part, extent)
            axes.append(axis)
            view.append(slice(None, None, -1) if goes_down else slice(None))
            result.append(axis[1])
            continue
        if _is_integer(part):
            axes.append((_integer(part, extent, dimension), 1, 1))
            view.append(0)
            continue
        wanted = _list_of(part)
        if wanted.ndim != 1:
            raise IndexError(
                f"axis {dimension}: an orthogonal index is a list or a mask of one dimension, not of {wanted.ndim}"
            )
        if wanted.dtype.kind == "b":
            if len(wanted) != extent:
                raise IndexError(
                    f"axis {dimension}: the mask has {len(wanted)} entries, the axis {extent}"
                )
            wanted = wanted.nonzero()[0]
        wanted = _wrapped(wanted, extent, dimension)
        once, inverse = np.unique(wanted, return_inverse=True)
        axes.append(_as_axis(once))
        view.append(slice(None))
        if not np.array_equal(once, wanted):
            takes.append((len(result), inverse))
        result.append(len(wanted))
    return Selection(
        tuple(axes),
        tuple(_count_of(a) for a in axes),
        tuple(result),
        tuple(view),
        takes=tuple(takes),
        is_scalar=not result,
    )


def select_points(key: Any, shape: tuple[int, ...], order: str = "C") -> Selection:
    """Lists that choose points, or a mask: the dimensions of the lists come first, whatever stands between them."""
    parts = [part for part in _expanded(key, shape) if part is not _GAP]
    return _points(parts, shape, order, stays=False)
