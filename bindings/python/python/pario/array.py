"""Arrays: files of the service with the semantics of numpy.

What an index selects stands in :mod:`pario._index`, how bytes travel in the client below. Here both meet numpy's arrays.
"""

from __future__ import annotations

import asyncio
import html
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _native, _service
from ._dtypes import DTYPE_VALUE, as_buffer, dtype_of, element_of, is_of_torch
from ._index import Axis, Plain, Selection, plain, select, select_orthogonal, select_points
from .attributes import Attributes, encoded
from .teams import Block, Team

#: Bytes of a region up to which values that need another order or type are brought into it at once.
_AT_ONCE = 64 << 20
#: Entries of a region that one value is spread over at once.
_FEW = 4096


def _text(element: str, shape: tuple[int, ...], order: str) -> str:
    extents = ",".join(map(str, shape))
    return f"{element}[{extents}]" + (":fortran" if order == "F" else "")


def _parsed(text: str) -> tuple[str, tuple[int, ...], str]:
    head, _, tail = text.partition("[")
    extents, _, order = tail.partition("]")
    shape = tuple(int(n) for n in extents.split(",") if n.strip())
    return head.strip(), shape, "F" if "fortran" in order else "C"


def _shape(shape: Any) -> tuple[int, ...]:
    extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    found = tuple(int(n) for n in extents)
    if any(n < 0 for n in found):
        raise ValueError("negative dimensions are not allowed")
    return found


class Array:
    """An array of the service. Slicing reads, assigning to slices writes, both as numpy does it.

    Open one with :func:`pario.open` or :func:`pario.create`. Threads may share it; a pickled one opens the same array
    where it is unpickled, and a child process after a fork opens it again by itself.
    """

    __array_priority__ = 10

    def __init__(self, service: _service.Service, path: str, mode: str, team: Team | None = None) -> None:
        self.service = service
        self.path = path if path.startswith("/") else "/" + path
        self.mode = mode
        self._team = team
        self._is_closed = False
        self._generation = -1
        self._file: _native.File
        self._reopen()

    # --- Opening ---

    @classmethod
    def _open(cls, service: _service.Service, path: str, mode: str = "r+", *, comm: Any = None) -> "Array":
        if mode not in ("r", "r+"):
            raise ValueError(f"mode: '{mode}' is unknown; give 'r' or 'r+', or use pario.create")
        team = None if comm is None else Team.of(comm, service)
        return cls(service, path, mode, team)

    @classmethod
    def _create(
        cls,
        service: _service.Service,
        path: str,
        shape: Any,
        dtype: Any = "f8",
        *,
        layout: Any = None,
        order: str = "C",
        overwrite: bool = False,
        exist_ok: bool = False,
        attrs: dict[str, Any] | None = None,
        hints: dict[str, Any] | None = None,
        comm: Any = None,
    ) -> "Array":
        team = None if comm is None else Team.of(comm, service)
        made: Array | None = None
        failure: BaseException | None = None
        if team is None or team.rank == 0:
            try:
                made = cls._create_alone(
                    service, path, _shape(shape), np.dtype(dtype), layout, order, overwrite, exist_ok, attrs, hints
                )
            except Exception as error:  # told to all below
                failure = error
        if team is None:
            if failure is not None:
                raise failure
            assert made is not None
            return made
        said = team.broadcast(None if failure is None else (type(failure).__name__, str(failure)))
        if failure is not None:
            raise failure
        if said is not None:
            raise OSError(f"rank 0 could not create {path}: {said[0]}: {said[1]}")
        return cls(service, path, "r+", team)

    @classmethod
    def _create_alone(
        cls,
        service: _service.Service,
        path: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        layout: Any,
        order: str,
        overwrite: bool,
        exist_ok: bool,
        attrs: dict[str, Any] | None,
        hints: dict[str, Any] | None,
    ) -> "Array":
        if order not in ("C", "F"):
            raise ValueError(f"order: {order!r} is unknown; give 'C' or 'F'")
        element, said = element_of(dtype)
        values = [] if said is None else [(DTYPE_VALUE, said)]
        values += [encoded(name, value) for name, value in (attrs or {}).items()]
        given = [(name, str(value)) for name, value in (hints or {}).items()]
        how: dict[str, Any] = {
            "array": _text(element, shape, order),
            "layout": None if layout is None else str(layout),
            "values": values,
            "hints": given,
        }
        path = path if path.startswith("/") else "/" + path
        parent = path.rsplit("/", 1)[0]
        connection = service.connection
        mode = "a" if exist_ok and not overwrite else "x"
        while True:
            if overwrite:
                try:
                    connection.remove_file(path)
                except FileNotFoundError:
                    pass
            try:
                file = connection.open(path, mode, **how)
                break
            except FileNotFoundError:
                if not parent or service.exists(parent):
                    raise
                service.mkdir(parent)
            except FileExistsError:
                if not overwrite:
                    raise
        file.close()
        made = cls(service, path, "r+")
        if mode == "a" and (made.shape, made.dtype, made.order) != (shape, dtype, order):
            found = f"{made.dtype} {made.shape}"
            made.close()
            raise ValueError(f"{path} is there already and holds {found}; open it, or create it with overwrite=True")
        return made

    def _reopen(self) -> None:
        connection = self.service.connection
        if self._generation >= 0:
            _service._of_parents.append(self._file)
        self._file = connection.open(self.path, self.mode)
        self._generation = _service.generation
        self._read_type()

    def _read_type(self) -> None:
        connection = self.service.connection
        text = connection.stat(self.path)["array"]
        if text is None:
            self._file.close()
            raise ValueError(f"{self.path} holds plain bytes and no array; open it with pario.filesystem")
        self._element, self._extents, self._order = _parsed(text)
        said = None
        if self._element.startswith("bytes"):
            said = dict(connection.values(self.path)).get(DTYPE_VALUE)
        self._dtype = dtype_of(self._element, said)
        self._array_text = _text(self._element, self._extents, self._order)

    def _here(self) -> _native.File:
        """The file as this process has it open."""
        if self._is_closed:
            raise ValueError("the array is closed; open it again")
        if self._generation != _service.generation:
            self._reopen()
        return self._file

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickled, (self.service.url, self.path, self.mode))

    # --- What it is ---

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of every dimension, as this opening knows it; :meth:`refresh` asks again."""
        return self._extents

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._extents)

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self._extents)

    @property
    def nbytes(self) -> int:
        """The bytes of all entries."""
        return self.size * self._dtype.itemsize

    @property
    def itemsize(self) -> int:
        """The bytes of one entry."""
        return self._dtype.itemsize

    @property
    def order(self) -> str:
        """``'C'`` if the last index varies fastest in the file, ``'F'`` if the first does."""
        return self._order

    @property
    def attrs(self) -> Attributes:
        """Values that are kept with the file."""
        return Attributes(self)

    def refresh(self) -> "Array":
        """Asks for the shape again, which others may have changed."""
        self._here()
        self._read_type()
        return self

    def __len__(self) -> int:
        if not self._extents:
            raise TypeError("len() of unsized object")
        return self._extents[0]

    def __iter__(self) -> Iterator[Any]:
        if not self._extents:
            raise TypeError("iteration over a 0-d array")
        for i in range(self._extents[0]):
            yield self[i]

    def __repr__(self) -> str:
        order = ", order='F'" if self._order == "F" else ""
        return f"<pario.Array {self.path} {self._extents} {self._dtype}{order}>"

    # --- Reading ---

    def __getitem__(self, key: Any) -> Any:
        found = plain(key, self._extents)
        if found is not None:
            axes, shape, result = found
            region: np.ndarray[Any, Any] = np.empty(shape, self._dtype, self._order)  # type: ignore[call-overload]
            if region.nbytes:
                self._here().read_region(self._array_text, axes, as_buffer(region))
            return region.reshape(result, order=self._order) if result else region[(0,) * region.ndim]  # type: ignore[call-overload]
        if isinstance(key, str) or (isinstance(key, list) and key and isinstance(key[0], str)):
            return self[...][key]
        if isinstance(key, Block):
            return self.mine[...]
        return self._get(self._selected(key))

    def _selected(self, key: Any) -> Selection:
        return select(key, self._extents, self._order)

    def get(self, key: Any = ..., out: Any = None) -> Any:
        """Reads what an index selects, into ``out`` if that is given: an array, or what shows its memory by the buffer protocol or DLPack.

        Bytes go straight into ``out``, whatever its strides, if it has the type of the array and the index neither goes
        backwards nor repeats.

        >>> a = pario.save("/numbers", np.arange(6))
        >>> memory = bytearray(4 * 8)
        >>> _ = a.get(np.s_[1:5], out=memoryview(memory).cast("q"))
        >>> np.frombuffer(memory, "i8")
        array([1, 2, 3, 4])
        """
        if out is None or isinstance(out, np.ndarray):
            return self._get(self._selected(key), out)
        if is_of_torch(out):
            from . import torch as beside

            beside.read_into(self, key, out)
            return out
        self._get(self._selected(key), _memory_of(out))
        return out

    def _get(self, selected: Selection, out: np.ndarray[Any, Any] | None = None) -> Any:
        if out is not None:
            if out.shape != selected.shape:
                raise ValueError(f"out: shape {out.shape}, but {selected.shape} is read")
            straight = self._straight(selected, out)
            if straight is not None and out.flags.writeable:
                self._read(selected, straight)
                return out
            out[...] = self._get(selected)
            return out
        region = np.empty(selected.region_shape, self._dtype, order=self._order)  # type: ignore[call-overload]
        self._read(selected, region)
        found = selected.result(region)
        return found[()] if selected.is_scalar else found

    def _straight(self, selected: Selection, given: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """Memory of a program in the shape of the region, if it is the region as it is."""
        if selected.points is not None or selected.takes or given.dtype != self._dtype:
            return None
        dimensions: list[int] = []
        at = 0
        for part in selected.view:
            if part is None:
                given = given[(slice(None),) * at + (0, ...)]
            elif isinstance(part, slice):
                dimensions.append(given.shape[at])
                if part.step == -1:
                    given = given[(slice(None),) * at + (slice(None, None, -1),)]
                at += 1
            else:
                given = given[(slice(None),) * at + (None,)]
                at += 1
        return given

    def _text_for(self, selected: Selection) -> str:
        return f"{self._element}[{self.size}]" if selected.points is not None else self._array_text

    def _read(self, selected: Selection, region: np.ndarray[Any, Any]) -> None:
        file = self._here()
        if self._dtype.itemsize and region.size:
            file.read_region(*_lined(self._text_for(selected), selected.axes, as_buffer(region)))

    @property
    def oindex(self) -> "_Indexer":
        """Orthogonal indexing: every list or mask chooses along its dimension for itself."""
        return _Indexer(self, select_orthogonal)

    @property
    def vindex(self) -> "_Indexer":
        """Vectorised indexing: lists choose points together, and their dimensions come first."""
        return _Indexer(self, select_points)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("the entries are in a file: an array of them is a copy")
        found = np.asarray(self._get(self._selected(Ellipsis)))
        return found if dtype is None else found.astype(dtype, copy=False)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The entries in memory of the caller, as DLPack shows them: a copy, which changes neither with the file nor it.

        >>> np.from_dlpack(pario.save("/numbers", np.arange(3)))
        array([0, 1, 2])
        """
        if copy is False:
            raise BufferError("the entries are in a file: what DLPack shows is a copy; ask for one")
        if dl_device not in (None, (1, 0)):
            raise BufferError(f"dl_device: {dl_device} is not the CPU; bring the copy there")
        if stream is not None:
            raise BufferError("stream: the entries come to memory of the CPU, which has none; give None")
        found = np.asarray(self[...])
        if max_version is None:
            return found.__dlpack__()
        try:
            return found.__dlpack__(max_version=max_version)
        except TypeError:
            # Before 2.1 numpy knows the first version only, which every reader takes.
            return found.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU."""
        return (1, 0)

    def item(self) -> Any:
        """The entry of an array that has one, as Python has it."""
        return self[...].item()

    def __bool__(self) -> bool:
        return bool(self[...])

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    # --- Writing ---

    def __setitem__(self, key: Any, value: Any) -> None:
        found = plain(key, self._extents)
        if found is not None and self.mode != "r" and self._set_plain(found, value):
            return
        if isinstance(key, Block):
            self.mine[...] = value
            return
        self._set(self._selected(key), value)

    def set(self, key: Any, value: Any) -> None:
        """Writes values where an index selects; the same as assigning."""
        self[key] = value

    def _value(self, value: Any) -> np.ndarray[Any, Any]:
        if isinstance(value, Array):
            value = value[...]
        if is_of_torch(value):
            from . import torch as beside

            value = beside.values_of(value)
        if isinstance(value, (np.ndarray, np.generic)):
            return np.asarray(value).astype(self._dtype, copy=False)
        return np.asarray(value, dtype=self._dtype)

    def _set_plain(self, found: Plain, value: Any) -> bool:
        """Writes values that lie in memory as the region does, or one value for a small region; whether it did."""
        axes, shape, result = found
        given = self._value(value)
        if given.shape == result:
            is_ready = given.flags.c_contiguous if self._order == "C" else given.flags.f_contiguous
            if not is_ready:
                return False
            region = given.reshape(shape, order=self._order)  # type: ignore[call-overload]
        elif not given.ndim and math.prod(shape) <= _FEW:
            region = np.empty(shape, self._dtype, self._order)  # type: ignore[call-overload]
            region[...] = given
        else:
            return False
        if region.nbytes:
            self._here().write_region(self._array_text, axes, as_buffer(region))
        return True

    def _set(self, selected: Selection, value: Any) -> None:
        if self.mode == "r":
            raise PermissionError(f"{self.path} was opened for reading; open it with 'r+'")
        given = self._value(value)
        shape = selected.shape
        while given.ndim > len(shape) and given.shape[0] == 1:
            given = given[0]
        try:
            given = np.broadcast_to(given, shape)
        except ValueError:
            raise ValueError(
                f"could not broadcast input array from shape {given.shape} into shape {shape}"
            ) from None
        if selected.points is not None:
            self._set_points(selected, given)
        elif selected.takes:
            self._set_lists(selected, given)
        else:
            straight = self._straight(selected, given)
            assert straight is not None
            self._write(selected.axes, straight)

    def _set_points(self, selected: Selection, given: np.ndarray[Any, Any]) -> None:
        assert selected.points is not None
        region = np.empty(selected.region_shape, self._dtype)
        # Of entries that are named twice the last one counts, as in numpy.
        region[selected.points.ravel()] = given.ravel()
        if region.size:
            text = self._text_for(selected)
            self._here().write_region(text, selected.axes, as_buffer(region))

    def _set_lists(self, selected: Selection, given: np.ndarray[Any, Any]) -> None:
        region = np.empty(selected.region_shape, self._dtype, order=self._order)  # type: ignore[call-overload]
        viewed = region[selected.view]
        if selected.to_front is not None:
            at, count = selected.to_front
            given = np.moveaxis(given, range(count), range(at, at + count))
        index: list[Any] = [slice(None)] * viewed.ndim
        if len(selected.takes) == 1:
            dimension, positions = selected.takes[0]
            viewed[(*index[:dimension], positions)] = given
        else:
            lists = [np.arange(n) for n in viewed.shape]
            for dimension, positions in selected.takes:
                lists[dimension] = positions
            viewed[np.ix_(*lists)] = given
        self._write(selected.axes, region)

    def _write(self, axes: tuple[Axis, ...], region: np.ndarray[Any, Any]) -> None:
        """Writes a region; what is not in its order in memory goes in parts of it."""
        if not region.size or not self._dtype.itemsize:
            return
        is_ready = region.flags.c_contiguous if self._order == "C" else region.flags.f_contiguous
        if not is_ready and region.nbytes > _AT_ONCE:
            d = max(range(region.ndim), key=lambda d: region.shape[d])
            half = region.shape[d] // 2
            for part in (slice(0, half), slice(half, None)):
                axis = axes[d]
                if isinstance(axis, tuple):
                    start, count, step = axis
                    rest = (start, half, step) if part.start == 0 else (start + half * step, count - half, step)
                    cut: Axis = rest
                else:
                    cut = axis[part]
                self._write((*axes[:d], cut, *axes[d + 1 :]), region[(slice(None),) * d + (part,)])
            return
        if not is_ready:
            region = np.array(region, order=self._order, copy=True)  # type: ignore[call-overload]
        self._here().write_region(*_lined(self._array_text, axes, as_buffer(region)))

    # --- asyncio ---

    async def read(self, key: Any = ..., out: np.ndarray[Any, Any] | None = None) -> Any:
        """Reads beside the event loop: ``block = await a.read(np.s_[:, 3])``."""
        return await asyncio.to_thread(self.get, key, out)

    async def write(self, key: Any, value: Any) -> None:
        """Writes beside the event loop."""
        await asyncio.to_thread(self.set, key, value)

    # --- Shape ---

    @property
    def _slowest(self) -> int:
        return 0 if self._order == "C" else self.ndim - 1

    def _changed(self, extent: int) -> tuple[int, ...]:
        shape = list(self._extents)
        shape[self._slowest] = extent
        return tuple(shape)

    def resize(self, shape: Any) -> None:
        """Gives the array another extent along its first dimension (the last one of an array in Fortran order). What is added
        is zero, what is cut off is gone. No byte that stays moves."""
        if isinstance(shape, (int, np.integer)):
            shape = self._changed(int(shape))
        wanted = _shape(shape)
        while True:
            if len(wanted) != self.ndim or not self.ndim or wanted != self._changed(wanted[self._slowest]):
                raise ValueError(
                    f"{self._extents} cannot become {wanted}: only dimension {self._slowest} can get another extent"
                )
            old, new = self._array_text, _text(self._element, wanted, self._order)
            is_shorter = wanted[self._slowest] < self._extents[self._slowest]
            changed, now = self.service.connection.change_array(self.path, old, new)
            self._now(now)
            if changed:
                if is_shorter:
                    self._here().resize(self.nbytes)
                return

    def _now(self, text: str) -> None:
        self._element, self._extents, self._order = _parsed(text)
        self._array_text = _text(self._element, self._extents, self._order)

    def append(self, values: Any) -> int:
        """Adds records at the end of the first dimension (the last one in Fortran order); the index of the first of them.

        Processes that append at the same time get records of their own each.
        """
        if not self.ndim:
            raise ValueError("an array without dimensions has no records")
        given = self._value(values)
        d = self._slowest
        if given.ndim == self.ndim - 1:
            given = np.expand_dims(given, d)
        if given.ndim != self.ndim or given.shape[:d] + given.shape[d + 1 :] != self._extents[:d] + self._extents[d + 1 :]:
            raise ValueError(f"records of shape {given.shape} do not fit {self._extents}")
        count = given.shape[d]
        while True:
            first = self._extents[d]
            new = _text(self._element, self._changed(first + count), self._order)
            changed, now = self.service.connection.change_array(self.path, self._array_text, new)
            self._now(now)
            if changed:
                break
        self[(slice(None),) * d + (slice(first, first + count),)] = given
        return first

    # --- Layout ---

    @property
    def layout(self) -> str:
        """How the array is cut into parts that lie on servers, in the layout language."""
        return str(self.service.layout(self.path)["layout"])

    def relayout(self, layout: Any, wait: bool = True, limit: int = 0) -> "Relayout":
        """Moves the array into another layout, while it is used as ever; at most ``limit`` bytes a second if that is not 0.

        Without ``wait`` it returns when the move has begun.
        """
        move = Relayout(self.service.connection.relayout(self.path, str(layout), limit))
        if wait:
            move.wait()
        return move

    @property
    def profile(self) -> dict[str, Any]:
        """What was observed of the use of this array, by all programs."""
        return self.service.connection.profile(self.path)

    def advise(self, budget: float | None = None) -> dict[str, Any]:
        """Layouts that would suit the observed use, best first, with predicted time and gain, and what moving costs."""
        return self.service.connection.advise(self.path, budget)

    def explain(self, key: Any = ...) -> dict[str, Any]:
        """Where the bytes of an index lie: which servers an access reaches, and how many bytes of which subfile."""
        selected = self._selected(key)
        text = self._text_for(selected)
        return self.service.connection.explain(self.path, text, selected.axes)

    # --- Teams ---

    @property
    def team(self) -> Team | None:
        """The team it was opened with."""
        return self._team

    @property
    def mine(self) -> Any:
        """This rank's part by the layout of the team: blocks of the first dimension, all ranks together."""
        if self._team is None:
            raise ValueError("the array was opened without a team; open it with comm=")
        return self.view(f"({', '.join(['block'] + ['*'] * (self.ndim - 1))}) onto {self._team.size}")

    def view(self, layout: Any, rank: int | None = None, size: int | None = None) -> Any:
        """The part of one rank in a layout: ``a.view("(*, block) onto {size}")``. Reading and writing it is collective if the array
        was opened with a team and no rank is given."""
        from .teams import Part

        team = self._team if rank is None else None
        if rank is None:
            rank = team.rank if team is not None else 0
        if size is None:
            size = self._team.size if self._team is not None else 1
        return Part(self, str(layout).format(rank=rank, size=size), rank, team)

    # --- The end ---

    def sync(self) -> bool:
        """Makes everything written through this opening durable, where the servers can; whether they can."""
        return self._here().sync()

    def close(self) -> None:
        """Closes it. Nothing is made durable by that."""
        if not self._is_closed:
            self._is_closed = True
            if self._generation == _service.generation:
                self._file.close()

    def __enter__(self) -> "Array":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        from .layouts import picture

        facts = self.service.layout(self.path)
        piece = facts["pieces"][-1]
        rows = [
            ("shape", self._extents),
            ("type", self._dtype),
            ("bytes", f"{self.nbytes:,}"),
            ("layout", facts["layout"]),
            ("chosen", facts["distribution"]),
            ("servers", ", ".join(sorted({str(s) for place in piece["servers"] for s in place}))),
        ]
        profile = self.profile
        if profile["reads"] or profile["writes"]:
            rows.append(("read", f"{profile['read_bytes']:,} bytes in {profile['reads']}"))
            rows.append(("written", f"{profile['written_bytes']:,} bytes in {profile['writes']}"))
        table = "".join(
            f"<tr><th style='text-align:left'>{html.escape(n)}</th><td style='text-align:left'>{html.escape(str(v))}</td></tr>"
            for n, v in rows
        )
        drawing = picture(self._array_text, facts["layout"])
        return f"<b>{html.escape(self.path)}</b><table>{table}</table>{drawing}"


def _memory_of(out: Any) -> np.ndarray[Any, Any]:
    """The memory of something that is no array of numpy, to be written to."""
    try:
        found = np.asarray(memoryview(out))
    except TypeError:
        if not hasattr(out, "__dlpack__"):
            raise TypeError(f"out: {type(out).__name__} shows no memory; give an array of numpy, a buffer or what knows DLPack") from None
        found = np.from_dlpack(out)
    if not found.flags.writeable:
        raise ValueError("out: this memory is read-only; give one that can be written to")
    return found


def _lined(
    text: str, axes: tuple[Axis, ...], memory: np.ndarray[Any, Any]
) -> tuple[str, tuple[Axis, ...], np.ndarray[Any, Any]]:
    """An entry without dimensions as a line of one."""
    if memory.ndim:
        return text, axes, memory
    return text.replace("[]", "[1]"), ((0, 1, 1),), memory.reshape(1)


class _Indexer:
    """Another meaning of an index."""

    def __init__(self, array: Array, meaning: Any) -> None:
        self._array = array
        self._meaning = meaning

    def __getitem__(self, key: Any) -> Any:
        array = self._array
        return array._get(self._meaning(key, array._extents, array._order))

    def __setitem__(self, key: Any, value: Any) -> None:
        array = self._array
        array._set(self._meaning(key, array._extents, array._order), value)


class Relayout:
    """A move into another layout, which goes on whether or not anybody looks."""

    def __init__(self, move: _native.Relayout) -> None:
        self._move = move

    @property
    def progress(self) -> dict[str, Any]:
        """State, bytes moved and to move, rate."""
        return self._move.progress()

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens."""
        return bool(self.progress["is_over"])

    def wait(self, progress: bool = False, timeout: float | None = None) -> dict[str, Any]:
        """Waits until it is over; with a bar of ``tqdm`` if that is there and asked for."""
        bar = _bar(progress, self.progress["total_bytes"])
        end = None if timeout is None else time.monotonic() + timeout
        pause = 0.001
        while True:
            now = self.progress
            if bar is not None:
                bar.update(now["moved_bytes"] - bar.n)
            if now["is_over"]:
                if bar is not None:
                    bar.close()
                return now
            if end is not None and time.monotonic() > end:
                raise TimeoutError("the move is not over yet; it goes on")
            time.sleep(pause)
            pause = min(pause * 2, 0.1)

    def pause(self) -> None:
        """Lets it rest."""
        self._move.pause()

    def resume(self) -> None:
        """Lets it go on."""
        self._move.resume()

    def cancel(self) -> None:
        """Moves everything back."""
        self._move.cancel()


def _bar(wanted: bool, total: int) -> Any:
    if not wanted:
        return None
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped]
    except ImportError:
        return None
    return tqdm(total=total, unit="B", unit_scale=True)


def _unpickled(url: str, path: str, mode: str) -> Array:
    return Array(_service.connect(url), path, mode)

